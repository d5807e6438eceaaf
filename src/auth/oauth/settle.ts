import { setImmediate as yieldTurn } from 'node:timers/promises'
import { sql } from 'kysely'
import { LIMITS } from '../base/limits.ts'
import { keepGoodLogins, selectLogins } from '../users/find-login.ts'
import { isUsableClient } from '../users/validity/rule.ts'
import type { AuthContext } from './context.ts'
import { keepGoodGrants, selectGrants } from './grants/grant.ts'
import { revoke, revokeClientTokens } from './revocations.ts'

type SettleContext = Pick<AuthContext, 'store' | 'rules' | 'clock' | 'settings'>

/** Rows that are read at once: SQLite reads them on the thread of the servers. */
const AT_ONCE = 100

/**
 * Revokes grants that are no longer good, so that FHIR servers refuse their access tokens, and deletes logins that are not
 * (REVOKE-5). The rule refuses both already: this only makes it known. Looks at accounts and clients that changed, and the
 * first time, and after `invalidate`, at everything that may have valid tokens.
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
  const walk = { column: 'created_at', from: 0 } as const
  await settleGrants(context, walk, query => query.where('grant.clinician_id', '=', id))
}

async function settleClient(context: SettleContext, id: string): Promise<void> {
  const walk = { column: 'created_at', from: 0 } as const
  const oldest = findOldestUse(context)
  // The plus keeps SQLite from the index of the last use, with which it would sort all grants of the client for each step.
  const isInUse = sql<boolean>`+"grant".last_used_at > ${oldest}`
  await settleGrants(context, walk, query => query.where('grant.client_id', '=', id).where(isInUse))
}

/** Access tokens of grants that were used before have expired, also those of extensions, whether developer tools are on or off. */
function findOldestUse({ settings, clock }: SettleContext): number {
  return clock() - (Math.max(settings.accessTokenTtlSeconds, LIMITS.extensionTokenSeconds) + 60) * 1000
}

async function settleAll(context: SettleContext): Promise<void> {
  const { store, rules, clock } = context
  await settleLogins(context)
  await settleGrants(context, { column: 'last_used_at', from: findOldestUse(context) }, query => query)
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

type GrantQuery = ReturnType<typeof selectGrants>

/** The order in which grants are read, which an index has. */
interface GrantWalk {
  readonly column: 'created_at' | 'last_used_at'
  readonly from: number
}

async function settleGrants(
  context: SettleContext,
  { column, from }: GrantWalk,
  limitTo: (query: GrantQuery) => GrantQuery,
): Promise<void> {
  const time = sql.ref(`grant.${column}`)
  for (let last = { [column]: from, id: '' }; ; await yieldTurn()) {
    const grants = await limitTo(selectGrants(context.store.db))
      .where('revoked_at', 'is', null)
      .where(sql<boolean>`(${time}, "grant".id) > (${last[column]}, ${last.id})`)
      .orderBy(`grant.${column}`)
      .orderBy('grant.id')
      .limit(AT_ONCE)
      .execute()
    await endGrants(context, grants)
    const next = grants.at(-1)
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
    if (extension !== null) await revoke(db, id, now, now + LIMITS.extensionTokenSeconds * 1000)
}
