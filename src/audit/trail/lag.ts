import type { Store } from '../../store/index.ts'
import { findLastId } from './follow.ts'
import { findLastSeal } from './seal.ts'

/** How far the hash chain or a feed is behind the trail. */
export interface AuditLag {
  /** `seal`, or the name of a feed: `feed`, `syslog`. */
  readonly name: string
  /** Records that are not yet processed, at most: ids may have gaps. */
  readonly waiting: number
  /** The time of the oldest of them. */
  readonly oldestAt: number | undefined
  /** Records that the receiver refused, which are sent again later. */
  readonly refused: number
}

/** The numbers for metrics, read with a few short statements. */
export async function measureAuditLag(
  store: Store,
  feeds: readonly string[] = [],
): Promise<readonly AuditLag[]> {
  const last = await findLastId(store)
  const sealed = (await findLastSeal(store))?.last_id ?? 0
  const cursors = await store.db.selectFrom('audit_cursor').selectAll().execute()
  const positions = feeds.map(
    name => [name, cursors.find(({ feed }) => feed === name)?.last_id ?? 0] as const,
  )
  return Promise.all(
    [['seal', sealed] as const, ...positions].map(async ([name, position]) => ({
      name,
      waiting: Math.max(0, last - position),
      oldestAt: await findTimeAfter(store, position),
      refused: name === 'seal' ? 0 : await countRefused(store, name),
    })),
  )
}

async function findTimeAfter({ db }: Store, position: number): Promise<number | undefined> {
  const next = await db
    .selectFrom('audit_event')
    .select('at')
    .where('id', '>', position)
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
  return next?.at
}

export async function countRefused({ db }: Store, feed: string): Promise<number> {
  const { count } = await db
    .selectFrom('audit_refused')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('feed', '=', feed)
    .executeTakeFirstOrThrow()
  return Number(count)
}
