import { randomUUID } from 'node:crypto'
import { sha256 } from '../../store/index.ts'
import type { Client } from '../client/client.ts'
import type { AuthContext } from '../context.ts'
import { findLaunch } from '../launch/launch-token.ts'
import { LIMITS } from '../limits.ts'
import type { Parameters } from '../parameters.ts'
import { type KnownParties, Refusal } from '../refusal.ts'
import { checkAudience } from './check-audience.ts'
import { checkClient } from './check-client.ts'
import { checkLaunch } from './check-launch.ts'
import { checkLengths, checkRepeated, checkUnsupported } from './check-parameters.ts'
import { checkPkce } from './check-pkce.ts'
import { checkRedirectUri } from './check-redirect-uri.ts'
import { checkResponseMode, checkResponseType } from './check-response.ts'
import { checkScope } from './check-scope.ts'
import { checkIdTokenHint, checkMaxAge, checkPrompt } from './check-user.ts'
import type { AuthorizationRequest, Finding, RequestInput } from './request.ts'
import { readRequestedScope } from './scope-terms.ts'

type Check = (
  input: RequestInput,
  context: AuthContext,
) => Finding | Refusal | undefined | Promise<Finding | Refusal | undefined>

/** The checks in their order. Client and redirect URI are verified before, so that these errors may be redirected. */
const CHECKS: readonly Check[] = [
  checkRepeated,
  checkLengths,
  checkUnsupported,
  checkResponseType,
  checkResponseMode,
  checkPkce,
  (input, { settings }) => checkAudience(input, settings.fhirBaseUrl),
  checkPrompt,
  checkMaxAge,
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
): Promise<AuthorizationRequest | Refusal> {
  const client = await checkClient(context.store, parameters)
  if (client instanceof Refusal) return client
  const redirectUri = checkRedirectUri(client, parameters)
  const result =
    redirectUri instanceof Refusal
      ? redirectUri
      : await runChecks({ client, redirectUri, parameters }, context)
  if (!(result instanceof Refusal)) return result
  const refusal = result.withKnown({ clientId: client.id, ...(await findNamedLaunch(context, parameters)) })
  // Without its state a client cannot accept a response.
  const isReturnable = client.approved && (parameters.get('state')?.length ?? 0) <= LIMITS.parameters.state
  return redirectUri instanceof Refusal || !isReturnable
    ? refusal
    : refusal.withReturnTo({ redirectUri, state: parameters.get('state'), omitsIss: !client.issParameter })
}

/** Finds the launch that a refused request names, for the audit trail. */
async function findNamedLaunch(
  { store }: AuthContext,
  parameters: Parameters,
): Promise<KnownParties | undefined> {
  const token = parameters.get('launch')
  const launch = token === undefined ? undefined : await findLaunch(store.db, sha256(token))
  return launch && { launchId: launch.id, patientId: launch.patientId }
}

async function runChecks(input: RequestInput, context: AuthContext): Promise<AuthorizationRequest | Refusal> {
  let found: Finding = {}
  for (const check of CHECKS) {
    const result = await check(input, context)
    if (result instanceof Refusal) return result
    found = { ...found, ...result }
  }
  return {
    ...found,
    ...readPlainParameters(input),
    ...requireFindings(found, input.client),
    arrivedAt: context.clock(),
  }
}

function readPlainParameters({ client, redirectUri, parameters }: RequestInput) {
  const readOptional = (name: 'state' | 'nonce' | 'loginHint', wireName: string) => {
    const value = parameters.get(wireName)
    return value === undefined ? {} : { [name]: value }
  }
  return {
    clientId: client.id,
    redirectUri,
    scope: readRequestedScope({ client, parameters }),
    ...(client.issParameter ? {} : { omitsIss: true }),
    ...readOptional('state', 'state'),
    ...readOptional('nonce', 'nonce'),
    ...readOptional('loginHint', 'login_hint'),
  }
}

function requireFindings({ codeChallenge, prompts = [], launchId = randomUUID() }: Finding, client: Client) {
  if (codeChallenge === undefined && client.pkceRequired)
    throw new Error('Cannot verify request: no check looked at PKCE')
  return { prompts, launchId }
}
