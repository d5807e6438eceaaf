import type { Kysely } from 'kysely'
import { randomToken, type Schema, sha256 } from '../../store/index.ts'
import type { Client } from '../client/client.ts'
import type { AuthContext } from '../context.ts'
import { createGrant } from '../grant/grant.ts'
import { grantScope } from '../grant/grant-scope.ts'
import { consumeLaunchToken, findLaunch, launchRefused } from '../launch/launch-token.ts'
import { LIFETIME } from '../lifetimes.ts'
import type { Login } from '../login/login.ts'
import { Refusal } from '../refusal.ts'
import { consumeInteraction } from './interaction.ts'
import type { AuthorizationRequest } from './request.ts'
import { scopeTerms } from './scope-terms.ts'

/** What a code is issued for. */
export interface Approval {
  readonly request: AuthorizationRequest
  readonly client: Client
  readonly login: Login
  /** The stored interaction that ends with the code, if the request was stored. */
  readonly interactionId: string | undefined
}

/**
 * Issues the code. Interaction and launch token are used up in the same transaction (contract 4): whichever of several
 * simultaneous attempts comes first gets a code, the others are refused and nothing of theirs stays.
 */
export async function issueCode(context: AuthContext, approval: Approval): Promise<string | Refusal> {
  try {
    return await context.store.db.transaction().execute(trx => issueIn(trx, context, approval))
  } catch (error) {
    if (error instanceof RolledBack) return error.refusal
    throw error
  }
}

// Thrown so that the transaction is rolled back with whatever it had already used up.
class RolledBack extends Error {
  readonly refusal: Refusal
  constructor(refusal: Refusal) {
    super(refusal.description)
    this.refusal = refusal
  }
}

async function issueIn(
  trx: Kysely<Schema>,
  { settings, clock }: AuthContext,
  { request, client, login, interactionId }: Approval,
): Promise<string> {
  const now = clock()
  if (interactionId !== undefined && !(await consumeInteraction(trx, interactionId)))
    throw new RolledBack(new Refusal('invalid_request', 'This request was already answered.'))
  const launch = await useLaunch(trx, request, now)
  const scope = grantScope(request.scope, scopeTerms(settings, client, launch))
  if (scope === '') throw new RolledBack(new Refusal('invalid_scope', 'None of the scopes can be granted.'))
  const grantId = await createGrant(
    trx,
    {
      clientId: client.id,
      clinicianId: login.clinician.id,
      loginIdHash: login.idHash,
      scope,
      patientId: launch?.patientId,
      encounterId: launch?.encounterId,
      needPatientBanner: launch?.needPatientBanner,
      fromEhr: launch !== undefined,
      further: launch?.further ?? {},
      authTime: login.createdAt,
      launchId: launch?.id,
    },
    now,
  )
  return createCode(trx, grantId, request, now)
}

async function useLaunch(trx: Kysely<Schema>, { launchHash }: AuthorizationRequest, now: number) {
  if (launchHash === undefined) return undefined
  if (!(await consumeLaunchToken(trx, launchHash, now))) throw new RolledBack(launchRefused('used'))
  return findLaunch(trx, launchHash)
}

async function createCode(
  trx: Kysely<Schema>,
  grantId: string,
  request: AuthorizationRequest,
  now: number,
): Promise<string> {
  const code = randomToken()
  await trx
    .insertInto('authorization_code')
    .values({
      code_hash: sha256(code),
      grant_id: grantId,
      redirect_uri: request.redirectUri,
      code_challenge: request.codeChallenge,
      nonce: request.nonce ?? null,
      expires_at: now + LIFETIME.code,
      used_at: null,
    })
    .execute()
  return code
}
