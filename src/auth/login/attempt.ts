import type { Transaction } from 'kysely'
import type { Schema, Store } from '../../store/index.ts'
import { networkOf } from '../../web/index.ts'
import type { Clinician } from '../clinician/clinician.ts'
import type { AuthContext } from '../context.ts'
import { failureCounter } from './failures.ts'

export interface Attempt {
  readonly username: string
  readonly password: string
  /** Where it comes from. */
  readonly address: string
}

/** Counts the failure, or forgets those before a success. */
type Keep = (trx: Transaction<Schema>) => Promise<void>

/** A login that is refused. What counts as a failure is to be kept. */
export type RefusedAttempt =
  /** Username or password: which of the two is nobody's business. */
  | { readonly kind: 'wrong'; readonly keep: Keep }
  | { readonly kind: 'too-many'; readonly retryAfterSeconds: number; readonly keep?: Keep }

/** What comes of a login attempt. */
export type AttemptResult =
  | { readonly kind: 'right'; readonly clinician: Pick<Clinician, 'id' | 'fhirUserId'>; readonly keep: Keep }
  | RefusedAttempt

/**
 * Looks at one attempt. Failures are counted before the password is compared, which saves the work, and again after. A
 * refusal is recorded at once, though its answer may have to wait: however many guesses come at the same moment, none
 * succeeds beyond the limit. A success changes nothing yet: what follows from it is kept together with its audit record.
 */
export async function tryLogin(
  { store, settings, clock, checkPassword }: LoginContext,
  { username, password, address }: Attempt,
  record: (refused: RefusedAttempt) => Promise<void>,
): Promise<AttemptResult> {
  const network = networkOf(address)
  const limit = (count: number) => ({ count, withinSeconds: settings.loginFailureWindowSeconds })
  const ofUsername = failureCounter(store, limit(settings.loginFailureLimit), [username, network])
  const ofNetwork = failureCounter(store, limit(settings.loginFailureLimitPerAddress), [network])
  const waitFor = async () => Math.max(await ofUsername.wait(clock()), await ofNetwork.wait(clock()))
  const refuse = async (refused: RefusedAttempt) => {
    await record(refused)
    return refused
  }
  const before = await waitFor()
  if (before > 0) return refuse({ kind: 'too-many', retryAfterSeconds: before })
  const clinician = await findByUsername(store, username)
  const attempt = {
    passwordHash: clinician?.password_hash,
    enabled: clinician?.disabled === false,
    ...{ username, password, network },
  }
  return checkPassword<AttemptResult>(attempt, async result => {
    if (result.kind === 'busy') return refuse({ kind: 'too-many', retryAfterSeconds: BUSY_SECONDS })
    const wait = await waitFor()
    if (wait > 0) return refuse({ kind: 'too-many', retryAfterSeconds: wait })
    if (result.kind === 'right' && clinician)
      return {
        kind: 'right',
        clinician: { id: clinician.id, fhirUserId: clinician.fhir_user_id },
        async keep(trx) {
          await ofUsername.clear(trx)
          if (result.newHash !== undefined) await replaceHash(trx, clinician, result.newHash)
        },
      }
    const keep: Keep = async trx => {
      await ofUsername.add(trx, clock())
      await ofNetwork.add(trx, clock())
    }
    return refuse(
      result.kind === 'wrong' && result.queueIsFull
        ? { kind: 'too-many', retryAfterSeconds: BUSY_SECONDS, keep }
        : { kind: 'wrong', keep },
    )
  })
}

type LoginContext = Pick<AuthContext, 'store' | 'settings' | 'clock' | 'checkPassword'>

const BUSY_SECONDS = 5

/** Unless the password was changed meanwhile. */
async function replaceHash(
  trx: Transaction<Schema>,
  { id, password_hash }: { readonly id: string; readonly password_hash: string },
  newHash: string,
): Promise<void> {
  await trx
    .updateTable('clinician')
    .set({ password_hash: newHash })
    .where('id', '=', id)
    .where('password_hash', '=', password_hash)
    .execute()
}

function findByUsername({ db }: Store, username: string) {
  return db
    .selectFrom('clinician')
    .select(['id', 'fhir_user_id', 'password_hash', 'disabled'])
    .where('username', '=', username)
    .executeTakeFirst()
}
