import type { Store } from '../../store/index.ts'
import type { Clinician } from '../clinician/clinician.ts'
import { isPasswordOf } from '../clinician/password.ts'
import { type FailureLimit, failureCounter } from './failures.ts'

export interface Attempt {
  readonly username: string
  readonly password: string
  /** Where it comes from. */
  readonly address: string
}

/** What comes of a login attempt. */
export type AttemptResult =
  | { readonly kind: 'right'; readonly clinician: Pick<Clinician, 'id' | 'fhirUserId'> }
  /** Username or password: which of the two is nobody's business. */
  | { readonly kind: 'wrong' }
  | { readonly kind: 'too-many'; readonly retryAfterSeconds: number }

/**
 * Looks at one attempt. Failures are counted before the password is compared, which saves the work, and again after:
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
  if (!right || !clinician) {
    await failures.add(clock())
    return { kind: 'wrong' }
  }
  await failures.clear()
  return { kind: 'right', clinician: { id: clinician.id, fhirUserId: clinician.fhir_user_id } }
}

function findByUsername({ db }: Store, username: string) {
  return db
    .selectFrom('clinician')
    .select(['id', 'fhir_user_id', 'password_hash', 'disabled'])
    .where('username', '=', username)
    .executeTakeFirst()
}
