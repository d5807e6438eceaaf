import { setImmediate as yieldTurn } from 'node:timers/promises'
import { sql } from 'kysely'
import { LIMITS } from '../../base/limits.ts'
import { keepGoodLogins, selectLogins } from '../../users/find-login.ts'
import { isUsableClient } from '../../users/validity/rule.ts'
import type { AuthContext } from '../context.ts'
import { keepGoodGrants, selectGrants } from '../grants/grant.ts'
import { revokeClientTokens, revokeTokens } from '../revoked-tokens.ts'

type SettleContext = Pick<AuthContext, 'store' | 'rules' | 'clock' | 'settings'>

/** Rows that are read at once: SQLite reads them on the thread of the servers. */
const AT_ONCE = 100

/**
 * Revokes grants that are no longer good, so that FHIR servers refuse their access tokens, and deletes logins that are not
 * (REVOKE-5). The rule refuses both already: this only makes it known. Looks at accounts and clients that changed, which
 * triggers write to `access_change` (`NOTES` in store/migrations/0001-schema.ts), and the first time, and after
 * `invalidate`, at everything that may have valid tokens.
 */
export function createSettling(context: SettleContext): { settle(): Promise<void>; invalidate(): void } {
  let isComplete = false
  let running: Promise<void> | undefined

  async function run(): Promise<void> {
    if (!isComplete) {
      isComplete = true
      await settleAll(context).catch(error => {
        isComplete = false
        throw error
      })
    }
    while (await settleChanges(context)) await yieldTurn()
  }

  return {
    settle() {
      running ??= run().finally(() => {
        running = undefined
      })
      return running
    },
    invalidate() {
      isComplete = false
    },
  }
}

/** Settles the oldest changes. False if there are none. */
async function settleChanges(context: SettleContext): Promise<boolean> {
  const { db } = context.store
  const changes = await db.selectFrom('access_change').selectAll().orderBy('id').limit(AT_ONCE).execute()
  if (changes.length === 0) return false
  const users = new Set(changes.flatMap(({ clinician_id }) => clinician_id ?? []))
  const clients = new Set(changes.flatMap(({ client_id }) => client_id ?? []))
  for (const id of users) await settleUser(context, id)
  for (const id of clients) await settleClient(context, id)
  const ids = changes.map(({ id }) => id)
  await db.deleteFrom('access_change').where('id', 'in', ids).execute()
  return true
}

async function settleUser(context: SettleContext, id: string): Promise<void> {
  const logins = await selectLogins(context.store.db).where('login.clinician_id', '=', id).execute()
  await endLogins(context, logins)
  await settleGrants(context, { column: 'created_at', owner: { clinician_id: id } })
}

async function settleClient(context: SettleContext, id: string): Promise<void> {
  const usedSince = findOldestUse(context)
  await settleGrants(context, { column: 'created_at', owner: { client_id: id }, usedSince })
}

/** Access tokens of grants that were used before have expired, also those of extensions, whether developer tools are on or off. */
function findOldestUse({ settings, clock }: SettleContext): number {
  return clock() - (Math.max(settings.accessTokenTtlSeconds, LIMITS.extensionTokenSeconds) + 60) * 1000
}

async function settleAll(context: SettleContext): Promise<void> {
  const { store, rules, clock } = context
  await settleLogins(context)
  await settleGrants(context, { column: 'last_used_at', from: findOldestUse(context) })
  const clients = await store.db
    .selectFrom('client')
    .select(['client_id', 'created_at', 'enabled_at', 'expires_at', 'disabled', 'for_loopback'])
    .where(({ eb, or }) => or([eb('for_loopback', '=', true), eb('expires_at', 'is not', null)]))
    .execute()
  for (const client of clients)
    if (!isUsableClient(client, rules, clock())) await revokeClientTokens(store.db, client, clock())
}

async function settleLogins(context: SettleContext): Promise<void> {
  for (let after = ''; ; await yieldTurn()) {
    const logins = await selectLogins(context.store.db)
      .where('id_hash', '>', after)
      .orderBy('id_hash')
      .limit(AT_ONCE)
      .execute()
    await endLogins(context, logins)
    const last = logins.at(-1)
    if (last === undefined) return
    after = last.id_hash
  }
}

async function endLogins(
  { store: { db }, rules, clock }: SettleContext,
  logins: Parameters<typeof keepGoodLogins>[2],
): Promise<void> {
  const good = new Set(await keepGoodLogins(db, rules, logins, clock()))
  const ended = logins.filter(login => !good.has(login)).map(({ id_hash }) => id_hash)
  if (ended.length > 0) await db.deleteFrom('login').where('id_hash', 'in', ended).execute()
}

/** The order in which grants are read, which an index has. */
interface GrantWalk {
  readonly column: 'created_at' | 'last_used_at'
  readonly from?: number
  readonly owner?: { readonly client_id: string } | { readonly clinician_id: string }
  /** Only grants that were used since then. */
  readonly usedSince?: number
}

/** The keys of so many grants are read at once: they are short, and most grants of an app with many are not in use. */
const KEYS_AT_ONCE = 1_000

async function settleGrants(context: SettleContext, walk: GrantWalk): Promise<void> {
  const { column, from = 0, owner = {}, usedSince = 0 } = walk
  const { db } = context.store
  for (let last = { [column]: from, id: '' }; ; await yieldTurn()) {
    const keys = await db
      .selectFrom('grant')
      .select(['id', 'created_at', 'last_used_at', 'revoked_at'])
      .where(({ and }) => and(owner))
      .where(sql<boolean>`(${sql.ref(column)}, id) > (${last[column]}, ${last.id})`)
      .orderBy(column)
      .orderBy('id')
      .limit(KEYS_AT_ONCE)
      .execute()
    const inUse = keys.filter(key => key.revoked_at === null && key.last_used_at > usedSince)
    for (let start = 0; start < inUse.length; start += AT_ONCE) {
      const ids = inUse.slice(start, start + AT_ONCE).map(({ id }) => id)
      await endGrants(context, await selectGrants(db).where('grant.id', 'in', ids).execute())
      await yieldTurn()
    }
    const next = keys.at(-1)
    if (!next) return
    last = { [column]: next[column], id: next.id }
  }
}

async function endGrants(
  { store: { db }, rules, clock }: SettleContext,
  grants: Parameters<typeof keepGoodGrants>[2],
): Promise<void> {
  const now = clock()
  const good = new Set(await keepGoodGrants(db, rules, grants, now))
  const ended = grants.filter(grant => !good.has(grant))
  if (ended.length === 0) return
  const ids = ended.map(({ id }) => id)
  await db
    .updateTable('grant')
    .set({ revoked_at: now })
    .where('id', 'in', ids)
    .where('revoked_at', 'is', null)
    .execute()
  // The list of revocations drops grants when tokens without an extension have expired.
  for (const { id, extension } of ended)
    if (extension !== null) await revokeTokens(db, id, now, now + LIMITS.extensionTokenSeconds * 1000)
}
