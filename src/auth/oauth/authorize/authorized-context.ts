import type { Settings } from '../../../config/index.ts'
import { parseScopes } from '../../../smart/index.ts'
import type { Client } from '../clients/client.ts'
import type { AuthContext } from '../context.ts'
import { hasScope } from '../grants/grant.ts'
import { grantScope, type ScopeTerms } from '../grants/grant-scope.ts'
import { readExtension } from '../hooks.ts'
import type { Launch } from '../launch/launch-token.ts'
import type { ExtraContext } from '../launch/options.ts'
import type { PickedContext, RequestInput } from './request.ts'

/** The context of an EHR launch, or what the user picked in a standalone launch. */
export interface LaunchContext {
  readonly patientId: string
  readonly encounterId: string | undefined
  readonly needPatientBanner: boolean
  readonly fromEhr: boolean
  readonly extraContext: ExtraContext
  readonly extension?: string | undefined
}

export function resolveLaunchContext(
  launch: Launch | undefined,
  picked: PickedContext | undefined,
): LaunchContext | undefined {
  if (launch) return { ...launch, fromEhr: true }
  if (!picked) return undefined
  const { patientId, encounterId, similarName } = picked
  // Such an app runs outside an EHR, so it must show the patient banner itself.
  return {
    patientId,
    encounterId,
    needPatientBanner: true,
    fromEhr: false,
    extraContext: similarName ? { similar_name: true } : {},
  }
}

export function describeAvailableContext(
  context: Pick<AuthContext, 'hooks'>,
  launchContext: LaunchContext | undefined,
): AvailableContext {
  if (!launchContext) return NO_CONTEXT
  return {
    launched: launchContext.fromEhr,
    hasPatient: true,
    hasEncounter: launchContext.encounterId !== undefined,
    atMost: readExtension(context, launchContext).scope,
  }
}

/** The context that scopes depend on: `patient/` needs a patient, `launch` a launch, and so on. */
export type AvailableContext = Pick<ScopeTerms, 'launched' | 'hasPatient' | 'hasEncounter' | 'atMost'>

const NO_CONTEXT: AvailableContext = { launched: false, hasPatient: false, hasEncounter: false }

/** A client, and what it asks to use. */
export interface Asking {
  readonly client: Client
  /** As in the request. */
  readonly resource?: string | undefined
}

export function makeScopeTerms(
  settings: Settings,
  { client, resource }: Asking,
  available: AvailableContext,
): ScopeTerms {
  const terms = {
    ...available,
    allowed: listAllowedScopes(client),
    searchPermission: settings.fhir.searchPermission,
    contexts: settings.fhir.scopeContexts,
  }
  return resource === undefined ? terms : limitAgent(settings, terms)
}

/** An assistant gets less than an app: one patient, and no access that lasts, unless settings allow more. */
function limitAgent({ agents }: Settings, terms: ScopeTerms): ScopeTerms {
  return {
    ...terms,
    contexts: terms.contexts.filter(context => agents.scopeContexts.includes(context)),
    withheld: agents.offlineAccess ? [] : ['offline_access'],
  }
}

/**
 * Reads the scopes of a request; by default the registered scopes of its client (RFC 6749, 3.3), with `launch` if the
 * request has a launch token.
 */
export function readRequestedScope({
  client,
  parameters,
}: Pick<RequestInput, 'client' | 'parameters'>): string {
  const scope = parameters.get('scope')
  if (scope !== undefined) return scope
  const isLaunch = parameters.get('launch') !== undefined && client.launchUrl !== undefined
  return isLaunch && !hasScope(client.scope, 'launch') ? `${client.scope} launch` : client.scope
}

export type PickerChoice = 'nothing' | 'patient' | 'encounter'

/** Whether a standalone launch needs a picker, by the scopes that can be granted to the client. */
export function choosePicker(settings: Settings, asking: Asking, scope: string): PickerChoice {
  const everything = { launched: false, hasPatient: true, hasEncounter: true }
  const granted = grantScope(scope, makeScopeTerms(settings, asking, everything)).split(' ')
  const asks = (name: string) => granted.some(one => one === name || one.startsWith(`${name}?`))
  if (asks('launch/encounter')) return 'encounter'
  // Clients of the Model Context Protocol do not know the scopes of launches.
  const needsPatient = asking.resource !== undefined && granted.some(one => one.startsWith('patient/'))
  return needsPatient || asks('launch/patient') ? 'patient' : 'nothing'
}

/** Predicts the context after the user's choice, to decide early whether any scope can be granted. */
export function predictContext(
  settings: Settings,
  asking: Asking,
  { scope, launched }: { readonly scope: string; readonly launched: boolean },
): AvailableContext {
  if (launched) return { launched, hasPatient: true, hasEncounter: true }
  const picker = choosePicker(settings, asking, scope)
  return { launched, hasPatient: picker !== 'nothing', hasEncounter: picker === 'encounter' }
}

// A client with a launch URL may use `launch`. The two `launch/` scopes grant no access by themselves, and without them a
// client with `patient/` scopes could not use a standalone launch.
function listAllowedScopes({ scope, launchUrl }: Client): string {
  const hasPatientScope = parseScopes(scope).some(one => one.kind === 'resource' && one.context === 'patient')
  return [
    scope,
    ...(launchUrl === undefined ? [] : ['launch']),
    ...(hasPatientScope ? ['launch/patient', 'launch/encounter'] : []),
  ].join(' ')
}
