import { randomBytes } from 'node:crypto'
import type { Settings } from '../../../config/index.ts'
import { isFailure } from '../../../core/index.ts'
import { parseScopes } from '../../../smart/index.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import { isProgramScope } from '../../words/program-scopes.ts'
import { chooseServiceResource } from '../agents/resource.ts'
import type { Client } from '../clients/client.ts'
import type { AuthContext } from '../context.ts'
import { areAgentsOff } from '../grants/agents-switch.ts'
import {
  checkGrantedScope,
  checkRequestedScope,
  compareScope,
  dropLoneSearch,
  grantEach,
  rememberScope,
} from '../grants/grant-scope.ts'
import { indexAllowedScopes, toCanonical } from '../grants/narrow.ts'
import { makeClientTokenPrefix } from '../revoked-tokens.ts'
import type { TokenRequest, UnsignedTokens } from './token-response.ts'

// SMART 2.2, backend services: at most five minutes.
const MAX_SECONDS = 300

/** Sallyport's own scopes for backend services: the launch API for EHRs. */
const EXTENSION_SCOPES: ReadonlySet<string> = new Set(['__launch-contexts.c'])

/**
 * `grant_type=client_credentials` (SMART 2.2, backend services), without a refresh token. Only the programs of this
 * server itself may use a secret instead of `private_key_jwt`.
 */
export async function grantClientCredentials(
  context: Pick<AuthContext, 'settings' | 'clock'>,
  { client, form, trx }: TokenRequest,
): Promise<UnsignedTokens | AuthRefusal> {
  const requested = form.get('scope')
  if (isProgram(client) && requested !== undefined)
    return requested === client.scope
      ? buildResponse(context, client, client.scope, context.settings.issuerUrl)
      : refuse('program-scope-differs', { scope: client.scope }).withComparison(
          compareScope(requested, client.scope),
        )
  if (client.authMethod !== 'private_key_jwt')
    return refuse('client-credentials-not-allowed').withComparison({
      name: 'grant_type',
      sent: 'client_credentials',
      origin: 'registered',
      expected: [`authorization_code, with ${client.authMethod}`],
    })
  if (requested === undefined) return refuse('system-scope-missing')
  const tooLarge = checkRequestedScope(requested)
  if (tooLarge) return tooLarge
  const scope = grantSystemScope(requested, client.scope, context.settings.fhir)
  const notGranted = checkGrantedScope(scope)
  if (notGranted) return notGranted.withComparison(compareScope(requested, client.scope))
  const resource = chooseServiceResource(form, context.settings)
  if (isFailure(resource)) return resource
  const isAgent = resource !== context.settings.fhirBaseUrl
  return isAgent && (await areAgentsOff(trx))
    ? refuse('agents-off')
    : buildResponse(context, client, scope, resource)
}

/** A program that administers this server or adds to its trail (ADMIN-1, AUDIT-24). Its token is for this server alone. */
function isProgram({ scope, authMethod }: Client): boolean {
  return isProgramScope(scope) && authMethod !== 'none'
}

function buildResponse(
  { settings, clock }: Pick<AuthContext, 'settings' | 'clock'>,
  client: Client,
  scope: string,
  audience: string,
): UnsignedTokens {
  const lifetimeSeconds = Math.min(settings.accessTokenTtlSeconds, MAX_SECONDS)
  const issuedAt = Math.floor(clock() / 1000)
  return {
    accessToken: {
      iss: settings.issuerUrl,
      sub: client.id,
      aud: audience,
      client_id: client.id,
      scope,
      jti: `${makeClientTokenPrefix(client)}.${randomBytes(12).toString('base64url')}`,
      iat: issuedAt,
      exp: issuedAt + lifetimeSeconds,
    },
    response: { token_type: 'Bearer', expires_in: lifetimeSeconds, scope },
  }
}

/** Grants the `system/` scopes that the client is registered for, if the server supports them. */
function grantSystemScope(requested: string, allowed: string, fhir: Settings['fhir']): string {
  const { scopeContexts, searchPermission } = fhir
  return rememberScope(['system', requested, allowed, scopeContexts, searchPermission], () => {
    const limits = indexAllowedScopes(parseScopes(allowed))
    return grantEach(requested, scope => {
      if (scope.kind === 'plain')
        return EXTENSION_SCOPES.has(scope.text) && limits.covers(scope) ? [scope.text] : []
      if (scope.context !== 'system' || !scopeContexts.includes('system')) return []
      const known = toCanonical(scope)
      return known ? limits.narrow(known).flatMap(part => dropLoneSearch(part, searchPermission)) : []
    })
  })
}
