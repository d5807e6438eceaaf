import type { Kysely } from 'kysely'
import { prepareQuery, type Schema } from '../../store/index.ts'
import { LIMITS } from '../base/limits.ts'

type Kind = Schema['recent_use']['kind']

/** The patients or apps that a user opened last, the latest first. */
export async function findRecent(db: Kysely<Schema>, userId: string, kind: Kind): Promise<readonly string[]> {
  return (await readNewest(db, userId, kind)).slice(0, LIMITS.recentListed)
}

/** The items that are listed, and one more if there are others. */
async function readNewest(db: Kysely<Schema>, userId: string, kind: Kind): Promise<readonly string[]> {
  const { rows } = await selectNewest(db, { userId, kind })
  return rows.map(row => row.item_id)
}

const selectNewest = prepareQuery((db, { userId, kind }: { userId: string; kind: Kind }) =>
  db
    .selectFrom('recent_use')
    .select('item_id')
    .where('clinician_id', '=', userId)
    .where('kind', '=', kind)
    .orderBy('used_at', 'desc')
    .orderBy('item_id')
    .limit(LIMITS.recentListed + 1),
)

/** Records that a clinician opened a patient or an app. Older entries than those that are listed are deleted. */
export async function recordRecent(
  db: Kysely<Schema>,
  userId: string,
  { kind, id, now }: { readonly kind: Kind; readonly id: string; readonly now: number },
): Promise<void> {
  await upsertUse(db, { userId, kind, id, now })
  const newest = await readNewest(db, userId, kind)
  if (newest.length <= LIMITS.recentListed) return
  await db
    .deleteFrom('recent_use')
    .where('clinician_id', '=', userId)
    .where('kind', '=', kind)
    .where('item_id', 'not in', newest.slice(0, LIMITS.recentListed))
    .execute()
}

const upsertUse = prepareQuery(
  (db, { userId, kind, id, now }: { userId: string; kind: Kind; id: string; now: number }) =>
    db
      .insertInto('recent_use')
      .values({ clinician_id: userId, kind, item_id: id, used_at: now })
      .onConflict(conflict =>
        conflict.columns(['clinician_id', 'kind', 'item_id']).doUpdateSet({ used_at: now }),
      ),
)
