import type { Admin } from '../base/action.ts'

/** Records and grants of a client that are read for its last use. */
const READ_FOR_LAST_USE = 100

/** When clients last acted, by the audit trail and by their newest grants. */
export async function findLastUses(
  admin: Pick<Admin, 'store'>,
  clientIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const uses = await Promise.all(clientIds.map(async id => [id, await findLastUse(admin, id)] as const))
  return new Map(uses.flatMap(([id, at]) => (at === undefined ? [] : [[id, at] as const])))
}

async function findLastUse({ store }: Pick<Admin, 'store'>, clientId: string): Promise<number | undefined> {
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
