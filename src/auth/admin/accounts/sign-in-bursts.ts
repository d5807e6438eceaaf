import { findPage } from '../../../audit/index.ts'
import { MINUTE_MS, shortenList } from '../../../core/index.ts'
import { findKnownAccounts } from '../../users/known.ts'
import type { Admin } from '../base/action.ts'
import type { Attention } from '../subject/attention.ts'

/** Guesses go on now: these are more than somebody mistypes a password, and more than a few people do. */
const BURST_MINUTES = 15
const MANY_OF_ONE = 5
const MANY_OF_ALL = 10

/** Refused sign-ins that are compared. */
const COMPARED_REFUSALS = 1_000

export const BURST_ATTENTION: Attention = {
  code: 'sign-ins-burst',
  path: '/audit?kind=login&result=refused',
  action: 'See records',
  async find({ admin }) {
    const counts = await countRefusals(admin)
    const guessed = [...counts].flatMap(([id, count]) => (count > MANY_OF_ONE ? id : []))
    const accounts = await findKnownAccounts(admin.store.db, guessed)
    const names = [...accounts.values()].map(({ username }) => username).toSorted()
    const [user] = names
    if (user !== undefined)
      return {
        text: `Accounts with more than ${MANY_OF_ONE} refused sign-ins in the last ${BURST_MINUTES} minutes: ${shortenList(names)}. Somebody may be guessing passwords.`,
        path: `/audit?${new URLSearchParams({ kind: 'login', result: 'refused', ...(names.length === 1 && { user }) })}`,
      }
    const total = counts.values().reduce((sum, count) => sum + count, 0)
    return total > MANY_OF_ALL
      ? `${total.toLocaleString('en')} sign-ins were refused in the last ${BURST_MINUTES} minutes, with various or unknown usernames. Somebody may be guessing passwords.`
      : undefined
  },
}

/**
 * The refused sign-ins of the last minutes, by account. The audit trail counts those of a minute before it stores them, and keeps
 * them after a sign-in that succeeded. Wrong passwords of an account are stored at once.
 */
async function countRefusals({
  store,
  clock,
}: Pick<Admin, 'store' | 'clock'>): Promise<ReadonlyMap<string | null, number>> {
  const since = clock() - BURST_MINUTES * MINUTE_MS
  const wrong = await store.db
    .selectFrom('wrong_password')
    .select(({ fn }) => ['clinician_id as id', fn.countAll().as('count')])
    .where('at', '>', since)
    .groupBy('clinician_id')
    .execute()
  const filter = { events: [{ kind: 'login' }], allowed: false, since, limit: COMPARED_REFUSALS } as const
  const counts = new Map<string | null, number>()
  for (const { subject, repeats } of (await findPage(store, filter)).records)
    counts.set(subject, (counts.get(subject) ?? 0) + (repeats ?? 1))
  for (const { id, count } of wrong) counts.set(id, Math.max(counts.get(id) ?? 0, Number(count)))
  return counts
}
