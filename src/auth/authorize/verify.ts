import { randomUUID } from 'node:crypto'
import { sha256 } from '../../store/index.ts'
import type { Client } from '../client/client.ts'
import type { AuthContext } from '../context.ts'
import { findLaunch } from '../launch/launch-token.ts'
import { LIMITS } from '../limits.ts'
import type { Parameters } from '../parameters.ts'
import { type Known, Refusal } from '../refusal.ts'
import { checkAudience } from './check-audience.ts'
import { checkClient } from './check-client.ts'
import { checkLaunch } from './check-launch.ts'
import { checkLengths, checkRepeated, checkUnsupported } from './check-parameters.ts'
import { checkPkce } from './check-pkce.ts'
import { checkRedirectUri } from './check-redirect-uri.ts'
import { checkResponseMode, checkResponseType } from './check-response.ts'
import { checkScope } from './check-scope.ts'
import { checkIdTokenHint, checkMaxAge, checkPrompt } from './check-user.ts'
import type { Asked, AuthorizationRequest, Finding } from './request.ts'
import { askedScope } from './scope-terms.ts'

type Check = (
  asked: Asked,
  context: AuthContext,
) => Finding | Refusal | undefined | Promise<Finding | Refusal | undefined>

/** The checks in their order. They come after client and redirect address, so what they refuse may be redirected. */
const CHECKS: readonly Check[] = [
  checkRepeated,
  checkLengths,
  checkUnsupported,
  checkResponseType,
  checkResponseMode,
  checkPkce,
  (asked, { settings }) => checkAudience(asked, settings.fhirBaseUrl),
  checkPrompt,
  checkMaxAge,
  (asked, { keys, settings }) => checkIdTokenHint(asked, keys, settings.issuerUrl),
  // First the scope: what asks for nothing is told so, whatever launch it names.
  checkScope,
  checkLaunch,
]

/**
 * Verifies an authorization request in full, before anything is stored or shown. What is wrong with a request of an
 * unverified client is told on a page: anybody can register a redirect URL, and must not make our address lead there
 * (RFC 9700, 4.11.2).
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
  const refusal = result.knowing({ clientId: client.id, ...(await launchNamed(context, parameters)) })
  // Without its state no client could take a response for its own.
  const isReturnable = client.approved && (parameters.get('state')?.length ?? 0) <= LIMITS.parameters.state
  return redirectUri instanceof Refusal || !isReturnable
    ? refusal
    : refusal.returningTo({ redirectUri, state: parameters.get('state'), omitsIss: !client.issParameter })
}

/** The launch that a refused request names, of whomever it is. */
async function launchNamed({ store }: AuthContext, parameters: Parameters): Promise<Known | undefined> {
  const token = parameters.get('launch')
  const launch = token === undefined ? undefined : await findLaunch(store.db, sha256(token))
  return launch && { launchId: launch.id, patientId: launch.patientId }
}

async function runChecks(asked: Asked, context: AuthContext): Promise<AuthorizationRequest | Refusal> {
  let found: Finding = {}
  for (const check of CHECKS) {
    const result = await check(asked, context)
    if (result instanceof Refusal) return result
    found = { ...found, ...result }
  }
  return { ...found, ...asFarAsPlain(asked), ...required(found, asked.client), arrivedAt: context.clock() }
}

function asFarAsPlain({ client, redirectUri, parameters }: Asked) {
  const optional = (name: 'state' | 'nonce' | 'loginHint', wireName: string) => {
    const value = parameters.get(wireName)
    return value === undefined ? {} : { [name]: value }
  }
  return {
    clientId: client.id,
    redirectUri,
    scope: askedScope({ client, parameters }),
    ...(client.issParameter ? {} : { omitsIss: true }),
    ...optional('state', 'state'),
    ...optional('nonce', 'nonce'),
    ...optional('loginHint', 'login_hint'),
  }
}

function required({ codeChallenge, prompts = [], launchId = randomUUID() }: Finding, client: Client) {
  if (codeChallenge === undefined && client.pkceRequired)
    throw new Error('Cannot verify request: no check looked at PKCE')
  return { prompts, launchId }
}
