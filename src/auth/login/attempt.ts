import type { Transaction } from 'kysely'
import type { Schema, Store } from '../../store/index.ts'
import type { Clinician } from '../clinician/clinician.ts'
import { isPasswordOf } from '../clinician/password.ts'
import { type FailureLimit, failureCounter } from './failures.ts'

export interface Attempt {
  readonly username: string
  readonly password: string
  /** Where it comes from. */
  readonly address: string
}

/** Counts the failure, or forgets those before a success. */
type Keep = (trx: Transaction<Schema>) => Promise<void>

/** What comes of a login attempt. */
export type AttemptResult =
  | { readonly kind: 'right'; readonly clinician: Pick<Clinician, 'id' | 'fhirUserId'>; readonly keep: Keep }
  /** Username or password: which of the two is nobody's business. */
  | { readonly kind: 'wrong'; readonly keep: Keep }
  | { readonly kind: 'too-many'; readonly retryAfterSeconds: number }

/**
 * Looks at one attempt, and changes nothing: what follows from it is kept together with its audit record. Failures are counted before the password is compared, which saves the work, and again after:
 * however many guesses come at the same moment, none succeeds beyond the limit.
 */
export async function tryLogin(
  store: Store,
  limit: FailureLimit,
  { username, password, address }: Attempt,
  clock: () => number,
): Promise<AttemptResult> {
  const failures = failureCounter(store, limit, username, address)
  const before = await failures.wait(clock())
  if (before > 0) return { kind: 'too-many', retryAfterSeconds: before }
  const clinician = await findByUsername(store, username)
  const right = (await isPasswordOf(clinician?.password_hash, password)) && clinician?.disabled === false
  const wait = await failures.wait(clock())
  if (wait > 0) return { kind: 'too-many', retryAfterSeconds: wait }
  if (!right || !clinician) return { kind: 'wrong', keep: trx => failures.add(trx, clock()) }
  const keep = (trx: Transaction<Schema>) => failures.clear(trx)
  return { kind: 'right', keep, clinician: { id: clinician.id, fhirUserId: clinician.fhir_user_id } }
}

function findByUsername({ db }: Store, username: string) {
  return db
    .selectFrom('clinician')
    .select(['id', 'fhir_user_id', 'password_hash', 'disabled'])
    .where('username', '=', username)
    .executeTakeFirst()
}
