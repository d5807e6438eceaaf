import { parseScopes } from '../../smart/index.ts'
import type { Client } from '../client/client.ts'
import type { AuthSettings } from '../context.ts'
import { hasScope } from '../grant/grant.ts'
import { grantScope, type ScopeTerms } from '../grant/grant-scope.ts'
import type { Asked } from './request.ts'

/** What is open when scopes are granted: `patient/` needs a patient, `launch` a launch, and so on. */
export type Opening = Pick<ScopeTerms, 'launched' | 'hasPatient' | 'hasEncounter'>

export const NOTHING_OPEN: Opening = { launched: false, hasPatient: false, hasEncounter: false }

/** What may be granted to a client for what is open. */
export function scopeTerms(settings: AuthSettings, client: Client, opening: Opening): ScopeTerms {
  return {
    ...opening,
    allowed: allowedTo(client),
    searchPermission: settings.fhir.searchPermission,
    contexts: settings.fhir.scopeContexts,
  }
}

/**
 * The scopes that a request asks for; where it leaves `scope` out, those that its client is registered for (RFC 6749,
 * 3.3), with `launch` where it names one.
 */
export function askedScope({ client, parameters }: Pick<Asked, 'client' | 'parameters'>): string {
  const scope = parameters.get('scope')
  if (scope !== undefined) return scope
  const isLaunch = parameters.get('launch') !== undefined && client.launchUrl !== undefined
  return isLaunch && !hasScope(client.scope, 'launch') ? `${client.scope} launch` : client.scope
}

/** What a request without a launch asks its user to choose. */
export type Choosing = 'nothing' | 'patient' | 'encounter'

/** Whether a standalone launch needs a picker: only for what the client may have. */
export function choosingOf(settings: AuthSettings, client: Client, scope: string): Choosing {
  const everything = { launched: false, hasPatient: true, hasEncounter: true }
  const granted = grantScope(scope, scopeTerms(settings, client, everything)).split(' ')
  const asks = (name: string) => granted.some(one => one === name || one.startsWith(`${name}?`))
  return asks('launch/encounter') ? 'encounter' : asks('launch/patient') ? 'patient' : 'nothing'
}

/** What will be open once its user has chosen: enough to tell whether anything of a request can be granted. */
export function openingAhead(
  settings: AuthSettings,
  client: Client,
  { scope, launched }: { readonly scope: string; readonly launched: boolean },
): Opening {
  if (launched) return { launched, hasPatient: true, hasEncounter: true }
  const choosing = choosingOf(settings, client, scope)
  return { launched, hasPatient: choosing !== 'nothing', hasEncounter: choosing === 'encounter' }
}

// Whoever registered a launch address is meant to be launched. The other two ask the user to choose and reach nothing by
// themselves: a list with `patient/` scopes but without them could never be used in a standalone launch.
function allowedTo({ scope, launchUrl }: Client): string {
  const speaksOfPatient = parseScopes(scope).some(one => one.kind === 'resource' && one.context === 'patient')
  return [
    scope,
    ...(launchUrl === undefined ? [] : ['launch']),
    ...(speaksOfPatient ? ['launch/patient', 'launch/encounter'] : []),
  ].join(' ')
}
