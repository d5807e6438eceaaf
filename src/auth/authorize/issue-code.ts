import type { Kysely, Transaction } from 'kysely'
import { createRandomToken, type Schema, sha256 } from '../../store/index.ts'
import type { Client } from '../client/client.ts'
import { chosenScope } from '../consent/chosen-scope.ts'
import type { AuthContext } from '../context.ts'
import { createGrant } from '../grant/grant.ts'
import { grantScope } from '../grant/grant-scope.ts'
import { consumeLaunchToken, findLaunch, launchRefused } from '../launch/launch-token.ts'
import { LIFETIME } from '../lifetimes.ts'
import type { Login } from '../login/login.ts'
import { Refusal } from '../refusal.ts'
import { consumeInteraction } from './interaction.ts'
import { type OpenedFor, openedFor, openingOf } from './opened-for.ts'
import type { AuthorizationRequest } from './request.ts'
import { scopeTerms } from './scope-terms.ts'

/** What a code is issued for. */
export interface Approval {
  readonly request: AuthorizationRequest
  readonly client: Client
  readonly login: Login
  /** The stored interaction that ends with the code, if the request was stored. */
  readonly interactionId: string | undefined
  /** What the user left ticked; undefined where nobody was asked. */
  readonly ticked: ReadonlySet<string> | undefined
}

/**
 * Issues the code. Interaction and launch token are used up in the same transaction (contract 4): whichever of several
 * simultaneous attempts comes first gets a code, the others are refused and nothing of theirs stays. The audit record
 * is part of it: without it nothing is used up.
 */
export async function issueCode(
  context: AuthContext,
  approval: Approval,
  record: (trx: Transaction<Schema>) => Promise<void>,
): Promise<string | Refusal> {
  try {
    return await context.store.db.transaction().execute(async trx => {
      const code = await issueIn(trx, context, approval)
      await record(trx)
      return code
    })
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
  { request, client, login, interactionId, ticked }: Approval,
): Promise<string> {
  const now = clock()
  if (interactionId !== undefined && !(await consumeInteraction(trx, interactionId)))
    throw new RolledBack(new Refusal('invalid_request', 'This request was already answered.'))
  const opened = openedFor(await useLaunch(trx, request, now), request.picked)
  const scope = scopeOf(grantScope(request.scope, scopeTerms(settings, client, openingOf(opened))), ticked)
  const grantId = await createGrant(
    trx,
    { ...rootOf(opened), ...holders(client, login), scope, launchId: request.launchId },
    now,
  )
  return createCode(trx, grantId, request, now)
}

/** What is granted: never more than may be, and of that what the user chose. */
function scopeOf(grantable: string, ticked: ReadonlySet<string> | undefined): string {
  if (grantable === '')
    throw new RolledBack(new Refusal('invalid_scope', 'None of the scopes can be granted.'))
  const scope = ticked ? chosenScope(grantable, ticked) : grantable
  if (scope === '') throw new RolledBack(new Refusal('access_denied', 'The user allowed nothing.'))
  return scope
}

function rootOf(opened: OpenedFor | undefined) {
  return {
    patientId: opened?.patientId,
    encounterId: opened?.encounterId,
    needPatientBanner: opened?.needPatientBanner,
    fromEhr: opened?.fromEhr ?? false,
    further: opened?.further ?? {},
  }
}

function holders(client: Client, login: Login) {
  return {
    clientId: client.id,
    clinicianId: login.clinician.id,
    loginIdHash: login.idHash,
    authTime: login.createdAt,
  }
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
  const code = createRandomToken()
  await trx
    .insertInto('authorization_code')
    .values({
      code_hash: sha256(code),
      grant_id: grantId,
      redirect_uri: request.redirectUri,
      code_challenge: request.codeChallenge ?? '',
      nonce: request.nonce ?? null,
      expires_at: now + LIFETIME.code,
      used_at: null,
    })
    .execute()
  return code
}
