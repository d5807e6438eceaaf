import { randomUUID } from 'node:crypto'
import { getMcpUrl, type Settings } from '../../../config/index.ts'
import { isFailure } from '../../../core/index.ts'
import { sha256 } from '../../../store/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import type { Parameters } from '../../base/request.ts'
import { findAgentResource, isOneOf, listResources } from '../agents/resource.ts'
import type { Client } from '../clients/client.ts'
import { findClient } from '../clients/client.ts'
import { refuseUnregistered } from '../clients/compare-id.ts'
import { isRegisteredRedirectUri } from '../clients/urls.ts'
import type { AuthContext } from '../context.ts'
import { areAgentsOff } from '../grants/agents-switch.ts'
import { hasScope } from '../grants/grant.ts'
import { readExtension } from '../hooks.ts'
import { type FoundLaunch, findLaunch } from '../launch/launch-token.ts'
import { readRequestedScope } from './authorized-context.ts'
import {
  checkAcrValues,
  checkEssentialAcr,
  checkIdTokenHint,
  checkLengths,
  checkMaxAge,
  checkPrompt,
  checkRepeated,
  checkScope,
  checkUnsupported,
} from './checks.ts'
import type { AuthorizationRequest, RequestFinding, RequestInput, VerifiedRequest } from './request.ts'

// A SHA-256 hash as base64url.
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/

/**
 * PKCE with S256 (SMART 2.2), unless an administrator made an exception for an older client. Without a method the
 * challenge would be `plain` (RFC 7636, 4.3), which is refused.
 */
function checkPkce({ client, parameters }: RequestInput): RequestFinding | AuthRefusal {
  const codeChallenge = parameters.get('code_challenge')
  const isLeftOut = codeChallenge === undefined && parameters.get('code_challenge_method') === undefined
  if (isLeftOut && !client.pkceRequired) return {}
  if (codeChallenge === undefined) return refuse('code-challenge-missing')
  const method = parameters.get('code_challenge_method')
  if (method !== 'S256')
    return refuse('code-challenge-method-unsupported').withComparison({
      name: 'code_challenge_method',
      sent: method,
      expected: ['S256'],
      origin: 'required',
    })
  return CHALLENGE.test(codeChallenge) ? { codeChallenge } : refuse('code-challenge-malformed')
}

type Check = (
  input: RequestInput,
  context: AuthContext,
) => RequestFinding | AuthRefusal | undefined | Promise<RequestFinding | AuthRefusal | undefined>

/** The checks in their order. Client and redirect URI are verified before, so that these errors may be redirected. */
const CHECKS: readonly Check[] = [
  checkRepeated,
  checkLengths,
  checkUnsupported,
  checkResponseType,
  checkResponseMode,
  checkPkce,
  (input, { settings }) => checkAudience(input, settings),
  checkAgentsOn,
  checkPrompt,
  checkMaxAge,
  checkAcrValues,
  checkEssentialAcr,
  (input, { keys, settings }) => checkIdTokenHint(input, keys, settings.issuerUrl),
  // The scope first, so that its errors do not depend on the launch token.
  checkScope,
  checkLaunch,
]

/**
 * Verifies an authorization request before anything is stored or shown. Errors of unverified clients are shown on a page:
 * anyone can register a redirect URI, and this server must not be an open redirector (RFC 9700, 4.11.2).
 */
export async function verifyRequest(
  context: AuthContext,
  parameters: Parameters,
): Promise<VerifiedRequest | AuthRefusal> {
  const client = await checkClient(context, parameters)
  if (isFailure(client)) return client
  const redirectUri = checkRedirectUri(client, parameters)
  const launch = await findNamedLaunch(context, parameters)
  const result = isFailure(redirectUri)
    ? redirectUri
    : await runChecks(
        applyExtension(context, {
          client,
          redirectUri,
          parameters,
          launch,
          resource: findAgentResource(context.settings, parameters),
        }),
        context,
      )
  if (!isFailure(result)) return { request: result, client, launch }
  const known = { clientId: client.id, launchId: launch?.id, patientId: launch?.patientId }
  const refusal = result.withKnown(known)
  // Without its state a client cannot accept a response.
  const isReturnable = client.approved && (parameters.get('state')?.length ?? 0) <= LIMITS.parameters.state
  return isFailure(redirectUri) || !isReturnable
    ? refusal
    : refusal.withReturnTo({ redirectUri, state: parameters.get('state'), omitsIss: !client.issParameter })
}

/** Finds the launch that a request names, valid or not. */
async function findNamedLaunch(
  { store }: AuthContext,
  parameters: Parameters,
): Promise<FoundLaunch | undefined> {
  const token = parameters.get('launch')
  return token === undefined ? undefined : findLaunch(store.db, sha256(token))
}

/** The extension of a launch may make PKCE optional for its client. */
function applyExtension(context: AuthContext, input: RequestInput): RequestInput {
  const { client, launch } = input
  const isOptional = launch?.clientId === client.id && readExtension(context, launch).isPkceOptional
  return isOptional ? { ...input, client: { ...client, pkceRequired: false } } : input
}

async function runChecks(
  input: RequestInput,
  context: AuthContext,
): Promise<AuthorizationRequest | AuthRefusal> {
  let found: RequestFinding = {}
  for (const check of CHECKS) {
    const result = await check(input, context)
    if (isFailure(result)) return result
    found = { ...found, ...result }
  }
  return {
    ...found,
    ...readPlainParameters(input),
    ...requireFindings(found, input.client),
    arrivedAt: context.clock(),
  }
}

function readPlainParameters({ client, redirectUri, parameters, resource }: RequestInput) {
  const readOptional = (name: 'state' | 'nonce' | 'loginHint', wireName: string) => {
    const value = parameters.get(wireName)
    return value === undefined ? {} : { [name]: value }
  }
  return {
    clientId: client.id,
    redirectUri,
    scope: readRequestedScope({ client, parameters }),
    ...(resource === undefined ? {} : { resource }),
    ...(client.issParameter ? {} : { omitsIss: true }),
    ...readOptional('state', 'state'),
    ...readOptional('nonce', 'nonce'),
    ...readOptional('loginHint', 'login_hint'),
  }
}

function requireFindings(
  { codeChallenge, prompts = [], launchId = randomUUID() }: RequestFinding,
  client: Client,
) {
  if (codeChallenge === undefined && client.pkceRequired)
    throw new Error('Cannot verify request: no check looked at PKCE')
  return { prompts, launchId }
}

/** `aud` (SMART 2.2, 7.1.4) or `resource` (RFC 8707) must be there, and each of them one of our resources. */
function checkAudience(
  { client, parameters, resource: ofAgent }: RequestInput,
  settings: Settings,
): AuthRefusal | undefined {
  const aud = parameters.get('aud')
  const resource = parameters.get('resource')
  const expected = listResources(settings)
  // SMART's `aud` is the FHIR base: whoever means the endpoint of assistants sends `resource`.
  const compare = (name: 'aud' | 'resource', sent: string | undefined) =>
    ({
      name,
      sent,
      expected: name === 'aud' ? [settings.fhirBaseUrl] : expected,
      origin: 'required',
    }) as const
  const facts = { fhirBase: settings.fhirBaseUrl }
  if (resource !== undefined && !isOneOf(expected, resource))
    return refuse('resource-unknown', facts).withComparison(compare('resource', resource))
  if (aud !== undefined && !isOneOf(expected, aud))
    return refuse('aud-of-another-server', facts).withComparison(compare('aud', aud))
  if (client.isDescribed && ofAgent === undefined)
    return refuse('agent-resource-missing', { mcp: getMcpUrl(settings) }).withComparison(
      compare('resource', resource),
    )
  return aud === undefined && resource === undefined
    ? refuse('aud-missing', facts).withComparison(compare('aud', aud))
    : undefined
}

async function checkAgentsOn({ resource }: RequestInput, { store }: AuthContext) {
  return resource !== undefined && (await areAgentsOff(store.db)) ? refuse('agents-off') : undefined
}

async function checkClient(context: AuthContext, parameters: Parameters): Promise<Client | AuthRefusal> {
  if (parameters.unreadable.has('client_id'))
    return refuse('parameter-unreadable', { parameter: 'client_id' })
  const id = parameters.get('client_id')
  if (id === undefined) return refuse('client-id-missing')
  const refused = await context.describedClients.refresh(id)
  if (refused) return refused
  const client = await findClient(context.store.db, context, id)
  return client ?? refuseUnregistered(context, 'app-not-registered', id)
}

/**
 * The launch token must be known, unused, unexpired, and issued for this client and FHIR base. Whether it is for this
 * user is checked after the login. It is consumed when the code is issued.
 */
function checkLaunch(
  { client, parameters, launch }: RequestInput,
  { clock, settings, hooks }: AuthContext,
): RequestFinding | AuthRefusal {
  const token = parameters.get('launch')
  if (token === undefined) return {}
  if (!hasScope(readRequestedScope({ client, parameters }), 'launch')) return refuse('launch-without-scope')
  if (!launch || (launch.extension !== undefined && !hooks)) return refuse('launch-unknown')
  if (launch.clientId !== client.id || launch.fhirBaseUrl !== settings.fhirBaseUrl)
    return refuse('launch-of-another-app').withComparison({
      name: 'client_id',
      sent: client.id,
      expected: [launch.clientId],
      origin: 'launched',
    })
  if (launch.usedAt !== undefined) return refuse('launch-used')
  return launch.expiresAt > clock()
    ? { launchHash: sha256(token), launchId: launch.id }
    : refuse('launch-expired')
}

function checkRedirectUri(client: Client, parameters: Parameters): string | AuthRefusal {
  if (parameters.unreadable.has('redirect_uri'))
    return refuse('parameter-unreadable', { parameter: 'redirect_uri' })
  const redirectUri = parameters.get('redirect_uri')
  const compared = {
    name: 'redirect_uri',
    sent: redirectUri,
    expected: client.redirectUris,
    origin: 'registered',
  } as const
  if (redirectUri === undefined)
    return refuse('redirect-uri-missing', { registered: client.redirectUris[0] ?? 'none' }).withComparison(
      compared,
    )
  if (redirectUri.length > LIMITS.urlCharacters)
    return refuse('parameter-too-long', { parameter: 'redirect_uri', longest: LIMITS.urlCharacters })
  return isRegisteredRedirectUri(client, redirectUri)
    ? redirectUri
    : refuse('redirect-uri-not-registered').withComparison(compared)
}

function checkResponseType({ parameters }: RequestInput): AuthRefusal | undefined {
  const type = parameters.get('response_type')
  return type === 'code'
    ? undefined
    : refuse(type === undefined ? 'response-type-missing' : 'response-type-unsupported').withComparison({
        name: 'response_type',
        sent: type,
        expected: ['code'],
        origin: 'required',
      })
}

function checkResponseMode({ parameters }: RequestInput): AuthRefusal | undefined {
  const mode = parameters.get('response_mode')
  return mode === undefined || mode === 'query'
    ? undefined
    : refuse('response-mode-unsupported').withComparison({
        name: 'response_mode',
        sent: mode,
        expected: ['query'],
        origin: 'required',
      })
}
