import type { Admin } from '../base/action.ts'

/** Records and grants of a client that are read for its last use. */
const READ_FOR_LAST_USE = 100

/** When a client last acted, by the audit trail and by its newest grants. */
export async function findLastUse(
  { store }: Pick<Admin, 'store'>,
  clientId: string,
): Promise<number | undefined> {
  const trail = await store.trail.read()
  const recorded = await trail
    .selectFrom('audit_event')
    .select(['at', 'allowed'])
    .where('client_id', '=', clientId)
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(READ_FOR_LAST_USE)
    .execute()
  const grants = await store.db
    .selectFrom('grant')
    .select('last_used_at')
    .where('client_id', '=', clientId)
    .orderBy('created_at', 'desc')
    .limit(READ_FOR_LAST_USE)
    .execute()
  const times = [
    ...recorded.filter(({ allowed }) => allowed).map(({ at }) => at),
    ...grants.map(grant => grant.last_used_at),
  ]
  return times.length === 0 ? undefined : Math.max(...times)
}
