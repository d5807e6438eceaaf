import type { Store } from '../../store/index.ts'

const DAY = 86_400_000
const AT_ONCE = 1000

/** Removes records that are older than so many days (`smart.server.audit-days`), some at a time: nobody waits long. */
export async function sweepAudit({ db }: Store, days: number, now: number): Promise<number> {
  let removed = 0
  for (;;) {
    const old = db
      .selectFrom('audit_event')
      .select('id')
      .where('at', '<', now - days * DAY)
      .limit(AT_ONCE)
    const { numDeletedRows } = await db.deleteFrom('audit_event').where('id', 'in', old).executeTakeFirst()
    removed += Number(numDeletedRows)
    if (numDeletedRows < AT_ONCE) return removed
  }
}
