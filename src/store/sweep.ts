import { randomUUID } from 'node:crypto'
import { setImmediate as yieldTurn } from 'node:timers/promises'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../core/index.ts'
import type { Instant, Schema } from './schema.ts'
import type { Store } from './store.ts'

/** The longest configurable lifetime of an access token. */
const MAX_TOKEN_MS = DAY_MS

/**
 * Codes and grants are kept beyond their use so that a replay still finds and revokes its grant, and so that access
 * tokens of a revoked grant stay revoked. A code that was never used shows that its grant has no token, as long as it could
 * have one.
 */
const KEPT = {
  launchToken: HOUR_MS,
  loginFailure: HOUR_MS,
  /** Longer than it counts: the user sees it at the next sign-in. */
  wrongCode: 30 * DAY_MS,
  /** As long as the cookie of a known browser. */
  knownSender: 180 * DAY_MS,
  /** So that the audit trail names the account of an expired link. */
  activationLink: 30 * DAY_MS,
  /** So that the person and the assistant see what became of it. */
  proposal: 30 * DAY_MS,
  code: MAX_TOKEN_MS,
  grant: 2 * DAY_MS,
  signingKey: 7 * DAY_MS,
}

/**
 * How long a refresh may be retried: the successor of a used refresh token stays readable. Longer than any client
 * waits for a response.
 */
export const REFRESH_RETRY_MS = MINUTE_MS

/** The column that ends a row, and how long the row is kept after that. An index has its rows in order. */
const EXPIRING = [
  ['launch_token', 'expires_at', KEPT.launchToken],
  ['authorization_request', 'expires_at', 0],
  ['pending_login', 'expires_at', 0],
  ['pending_sign_in', 'expires_at', 0],
  ['login', 'expires_at', 0],
  ['login_failure', 'at', KEPT.loginFailure],
  ['wrong_code', 'at', KEPT.wrongCode],
  ['known_sender', 'seen_at', KEPT.knownSender],
  ['activation_link', 'expires_at', KEPT.activationLink],
  ['app_launch', 'expires_at', 0],
  ['app_session', 'idle_expires_at', 0],
  ['app_session', 'max_expires_at', 0],
  ['app_session', 'renewable_until', 0],
  ['authorization_code', 'expires_at', KEPT.code],
  ['refresh_token', 'expires_at', 0],
  ['revocation', 'expires_at', 0],
  ['used_assertion', 'expires_at', 0],
  ['export_job', 'expires_at', 0],
  ['proposal', 'expires_at', KEPT.proposal],
  ['signing_key', 'retired_at', KEPT.signingKey],
] as const satisfies readonly (readonly [keyof Schema, string, number])[]

/** Deletes expired rows (STORE-3). Safe in several processes at once. */
export async function sweep(store: Store, now: Instant, { grants, names } = startWalks()): Promise<void> {
  for (const [table, column, keptMs] of EXPIRING) await removeUntil(store, table, column, now - keptMs)
  await inBatches(store, batch => removeSuccessors(store, now - REFRESH_RETRY_MS, batch))
  await removeGrants(store, now - KEPT.grant, grants)
  await removeClients(store, now)
  await removeNames(store, names)
}

/** The end of a client that an administrator removed, and that has too many rows to delete them at once. */
export const REMOVED = 0

/** Not of a client that was removed, and whose rows are still being deleted. */
export const isPresent = sql<boolean>`(expires_at is null or expires_at > ${sql.lit(REMOVED)})`

/** Deletes expired and removed clients, each after everything that belongs to it. */
async function removeClients(store: Store, now: Instant): Promise<void> {
  const { db, dialect } = store
  const isExpired = (id: string) =>
    db.selectFrom('client').select('client_id').where('client_id', '=', id).where('expires_at', '<', now)
  for (;;) {
    const client = await db
      .selectFrom('client')
      .select('client_id as id')
      .where('expires_at', '<', now)
      .orderBy('expires_at')
      .limit(1)
      .executeTakeFirst()
    if (!client) return
    await inBatches(store, async () => {
      const rows = await db
        .selectFrom('grant')
        .select('id')
        .where('client_id', 'in', isExpired(client.id))
        .limit(BATCH[dialect])
        .execute()
      await removeGrantsById(
        store,
        rows.map(({ id }) => id),
        now,
      )
      return rows.length
    })
    await db.deleteFrom('client').where('client_id', 'in', isExpired(client.id)).execute()
    await yieldTurn()
  }
}

/** Deletes grants with their codes and tokens. Access tokens that may be valid stay revoked. */
async function removeGrantsById(store: Store, ids: readonly string[], now: Instant): Promise<void> {
  if (ids.length === 0) return
  const list = sql.join(ids)
  for (const table of ['refresh_token', 'authorization_code'] as const)
    await inBatches(store, batch => {
      const rows = sql`select ${ROW[store.dialect]} from ${sql.table(table)} where grant_id in (${list}) limit ${batch}`
      return change(store, sql`delete from ${sql.table(table)} where ${isAmong(store, rows)}`)
    })
  await store.db.transaction().execute(async trx => {
    await revokeGrantTokens(trx, sql`id in (${list})`, now)
    await trx.deleteFrom('grant').where('id', 'in', ids).execute()
  })
}

/** Revokes the access tokens of grants that are deleted, as long as one of them could still be valid. */
export async function revokeGrantTokens(
  trx: Kysely<Schema>,
  grants: RawBuilder<unknown>,
  now: Instant,
): Promise<void> {
  const times = sql`cast(${now} as bigint), cast(${now + MAX_TOKEN_MS} as bigint)`
  await sql`insert into revocation (id, revoked_at, expires_at)
    select id, ${times} from "grant" where ${grants} and last_used_at > ${now - MAX_TOKEN_MS}
    on conflict do nothing`.execute(trx)
}

/** Rows of a statement. SQLite runs it on the thread of the servers, which must not wait for more than a few ms. */
const BATCH = { sqlite: 100, postgres: 1000 } as const

/** Runs a statement until it changes fewer rows than it may. */
async function inBatches({ dialect }: Store, work: (batch: number) => Promise<number>): Promise<number> {
  let total = 0
  for (;;) {
    const changed = await work(BATCH[dialect])
    total += changed
    if (changed < BATCH[dialect]) return total
    await yieldTurn()
  }
}

/** Deletes rows whose `column` is before `end`, in small batches. The column needs an index. */
export function removeUntil(
  store: Store,
  table: keyof Schema,
  column: string,
  end: Instant,
): Promise<number> {
  const name = sql.table(table)
  const key = sql.ref(column)
  return inBatches(store, async batch => {
    const rows = sql`select ${ROW[store.dialect]} from ${name} where ${key} < ${end} order by ${key} limit ${batch}`
    return change(store, sql`delete from ${name} where ${isAmong(store, rows)}`)
  })
}

const ROW = { sqlite: sql.raw('rowid'), postgres: sql.raw('ctid') } as const

/** The row of PostgreSQL as an array: it then looks up each row, and does not join. */
function isAmong({ dialect }: Store, rows: RawBuilder<unknown>): RawBuilder<boolean> {
  return dialect === 'sqlite' ? sql`rowid in (${rows})` : sql`ctid = any(array(${rows}))`
}

async function change({ db }: Store, statement: RawBuilder<unknown>): Promise<number> {
  return Number((await statement.execute(db)).numAffectedRows ?? 0)
}

function removeSuccessors(store: Store, end: Instant, batch: number): Promise<number> {
  const rows = sql`select ${ROW[store.dialect]} from refresh_token
    where successor_sealed is not null and used_at < ${end} order by used_at limit ${batch}`
  return change(store, sql`update refresh_token set successor_sealed = null where ${isAmong(store, rows)}`)
}

/** The position of a walk through the grants in the order of their last use. */
interface GrantWalk {
  at: Instant
  id: string
}

const startGrantWalk = (): GrantWalk => ({ at: 0, id: '' })

const GRANTS = { atOnce: 500, batches: 20 } as const

/**
 * A grant ends with its last refresh token, which no index shows. A sweep therefore looks at a part of the grants
 * that were not used lately, and the next sweep continues there.
 */
async function removeGrants(store: Store, end: Instant, walk: GrantWalk): Promise<void> {
  for (let batch = 0; batch < GRANTS.batches; batch++) {
    const grants = await store.db
      .selectFrom('grant')
      .select(['id', 'last_used_at as at'])
      .where('last_used_at', '<', end)
      .where(sql<boolean>`(last_used_at, id) > (${walk.at}, ${walk.id})`)
      .orderBy('last_used_at')
      .orderBy('id')
      .limit(GRANTS.atOnce)
      .execute()
    const ids = await findEndedGrants(
      store,
      grants.map(({ id }) => id),
      end,
    )
    for (let from = 0; from < ids.length; from += BATCH.sqlite) {
      await store.db
        .deleteFrom('grant')
        .where('id', 'in', ids.slice(from, from + BATCH.sqlite))
        .execute()
      await yieldTurn()
    }
    Object.assign(walk, grants.length < GRANTS.atOnce ? startGrantWalk() : grants.at(-1))
    if (grants.length < GRANTS.atOnce) return
    await yieldTurn()
  }
}

async function findEndedGrants({ db }: Store, ids: readonly string[], end: Instant) {
  if (ids.length === 0) return []
  const ended = await db
    .selectFrom('grant')
    .select('id')
    .where('id', 'in', ids)
    .where(({ or, eb, not, exists, selectFrom }) =>
      or([
        eb('revoked_at', '<', end),
        not(exists(selectFrom('refresh_token').select('grant_id').whereRef('grant_id', '=', 'grant.id'))),
      ]),
    )
    .execute()
  return ended.map(({ id }) => id)
}

/** The names of removed accounts and clients, and the column of the audit records that name them. */
const NAMED = [
  ['removed_clinician', 'id', 'subject'],
  ['removed_client', 'client_id', 'client_id'],
] as const

/** The key up to which each table was compared. */
type NameWalk = Partial<Record<keyof Schema, string>>

const NAMES_AT_ONCE = 200

/** Deletes the names that no audit record needs any more. A sweep compares a part of them, and the next one continues. */
async function removeNames({ trail }: Store, walk: NameWalk): Promise<void> {
  const db = await trail.read()
  for (const [table, key, named] of NAMED) {
    const names = sql`select ${sql.ref(key)} as id from ${sql.table(table)}
      where ${sql.ref(key)} > ${walk[table] ?? ''} order by ${sql.ref(key)} limit ${NAMES_AT_ONCE}`
    const { rows } = await sql<{ id: string }>`${names}`.execute(db)
    const last = rows.at(-1)
    if (!last) {
      delete walk[table]
      continue
    }
    await sql`delete from ${sql.table(table)} where ${sql.ref(key)} in (${sql.join(rows.map(({ id }) => id))})
      and not exists (select 1 from audit_event where audit_event.${sql.ref(named)} = ${sql.table(table)}.${sql.ref(key)})`.execute(
      db,
    )
    walk[table] = last.id
    await yieldTurn()
  }
}

function startWalks() {
  return { grants: startGrantWalk(), names: {} as NameWalk }
}

/** A failed sweep is reported and repeated at the next interval. */
export function startSweeping(store: Store, options: JobOptions): { stop(): Promise<void> } {
  const walks = startWalks()
  return repeatInOneProcess(store, 'sweep', { everyMs: MINUTE_MS, ...options }, now =>
    sweep(store, now, walks),
  )
}

export interface JobOptions {
  readonly clock?: () => number
  readonly everyMs?: number
  /** Longer than a round of the job takes. */
  readonly leaseMs?: number
  /** A round starts, and the lease is taken, only if there is work. */
  readonly hasWork?: () => Promise<boolean>
  readonly onError: (error: unknown) => void
}

/** The process that repeats a job keeps its lease; if it ends, another process takes over after two intervals. */
const INTERVALS = 2

/**
 * Repeats a job at an interval, in one of the processes that share the database. A failure is reported, and the job
 * is repeated at the next interval.
 */
export function repeatInOneProcess(
  store: Store,
  job: string,
  { clock = Date.now, everyMs = MINUTE_MS, leaseMs = INTERVALS * everyMs, hasWork, onError }: JobOptions,
  work: (now: Instant) => Promise<unknown>,
): { stop(): Promise<void> } {
  const holder = randomUUID()
  let running: Promise<unknown> | undefined
  const round = async () => {
    if (hasWork && !(await hasWork())) return
    if (await takeLease(store, { job, holder, ends_at: clock() + leaseMs }, clock())) await work(clock())
  }
  const schedule = () => {
    running ??= round()
      .catch(onError)
      .finally(() => {
        running = undefined
      })
  }
  schedule()
  const timer = setInterval(schedule, everyMs)
  timer.unref()
  return {
    stop: async () => {
      clearInterval(timer)
      await running
      await releaseLease(store, holder).catch(onError)
    },
  }
}

interface Lease {
  readonly job: string
  readonly holder: string
  readonly ends_at: Instant
}

async function takeLease({ db }: Store, lease: Lease, now: Instant): Promise<boolean> {
  const { numInsertedOrUpdatedRows = 0n } = await db
    .insertInto('lease')
    .values(lease)
    .onConflict(conflict =>
      conflict
        .column('job')
        .doUpdateSet({ holder: lease.holder, ends_at: lease.ends_at })
        .where(({ or, eb }) => or([eb('lease.ends_at', '<=', now), eb('lease.holder', '=', lease.holder)])),
    )
    .executeTakeFirst()
  return numInsertedOrUpdatedRows > 0n
}

async function releaseLease({ db }: Store, holder: string): Promise<void> {
  await db.deleteFrom('lease').where('holder', '=', holder).execute()
}
