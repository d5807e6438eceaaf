import { type Kysely, type RawBuilder, type Selectable, sql } from 'kysely'
import type { Schema, Store } from '../../store/index.ts'
import { EVERYTHING, type IndexRange, listTerms, type RecordFilter, type Term } from './terms.ts'

type Database = Kysely<Schema>

export type KeptRecord = Selectable<Schema['audit_event']>

/** The id orders records of the same instant. */
export interface TrailPosition {
  readonly at: number
  readonly id: number
}

export interface FindOptions extends RecordFilter {
  readonly order?: 'newest' | 'oldest'
  readonly after?: TrailPosition | undefined
  readonly limit: number
}

export interface RecordPage {
  readonly records: readonly KeptRecord[]
  /** The search stopped here before it found as many records as it may. Others may follow. */
  readonly next: TrailPosition | undefined
}

/** Rows that are read for a page at most, however few of them match. */
const READ_FOR_PAGE = 2000

/** Rows that are read for a count at most. */
const MAX_COUNTED = 10_000

/** Rows of all ranges of a search that are read at once. With many ranges, fewer rows of each are read. */
const READ_IN_ALL = 100_000
const MIN_OF_A_RANGE = 100

function limitRead({ driver }: Plan, most: number): number {
  return Math.max(MIN_OF_A_RANGE, Math.min(most, Math.floor(READ_IN_ALL / driver.length)))
}

/** Reads pages until there are as many records as the limit. */
export async function findRecords(store: Store, options: FindOptions): Promise<KeptRecord[]> {
  const found: KeptRecord[] = []
  let after = options.after
  do {
    const { records, next } = await findPage(store, {
      ...options,
      after,
      limit: options.limit - found.length,
    })
    found.push(...records)
    after = next
  } while (after)
  return found
}

/** Finds records with a bounded amount of work: see `RecordPage.next`. */
export async function findPage(store: Store, options: FindOptions): Promise<RecordPage> {
  const db = await store.trail.read()
  const chosen = await plan(db, options)
  const { limit } = options
  const hasRest = chosen.rest.length > 0
  const read = hasRest ? Math.max(limit, limitRead(chosen, READ_FOR_PAGE)) : limit
  const records = await readRecords(db, chosen, options, read)
    .selectAll()
    .orderBy('at', chooseDirection(options))
    .orderBy('id', chooseDirection(options))
    .limit(limit)
    .execute()
  const mayFollow = hasRest && records.length < limit
  return { records, next: mayFollow ? await findEnd(db, chosen, options, read) : undefined }
}

/** The kinds of the index `audit_event_oauth`, word for word. */
const OAUTH = sql<boolean>`kind in ('launch', 'authorize', 'token', 'refresh', 'introspect', 'revoke')`

/** Finds the first OAuth events of each launch, oldest first. */
export async function findFirstOAuthEvents(
  store: Store,
  launches: readonly string[],
  limit: number,
): Promise<readonly KeptRecord[]> {
  if (launches.length === 0) return []
  const united = await uniteFirstEvents(store, launches.slice(0, UNITED), limit)
  return [...united, ...(await findFirstOAuthEvents(store, launches.slice(UNITED), limit))]
}

async function uniteFirstEvents({ trail }: Store, launches: readonly string[], limit: number) {
  const parts = launches.map(
    launch => sql`select * from (select * from audit_event where launch_id = ${launch} and ${OAUTH}
      order by at, id limit ${limit}) as found`,
  )
  const db = await trail.read()
  return db
    .selectFrom(sql<KeptRecord>`(${sql.join(parts, sql` union all `)})`.as('event'))
    .selectAll()
    .orderBy('at')
    .orderBy('id')
    .execute()
}

/** The kinds of the index `audit_event_own`, word for word. */
const OWN = sql<boolean>`kind in ('authorize', 'revoke', 'logout')`

interface OwnEventsOptions {
  readonly subject: string
  readonly kinds: readonly ('authorize' | 'revoke' | 'logout')[]
  readonly since?: number
  readonly after?: TrailPosition | undefined
  readonly limit: number
}

/** Finds when a user allowed apps, ended their access, and signed out, newest first. */
export async function findOwnEvents(
  { trail }: Pick<Store, 'trail'>,
  { subject, kinds, since = 0, after, limit }: OwnEventsOptions,
): Promise<readonly KeptRecord[]> {
  const db = await trail.read()
  return db
    .selectFrom('audit_event')
    .selectAll()
    .where('subject', '=', subject)
    .where(OWN)
    .where('kind', 'in', kinds)
    .where('allowed', '=', true)
    .where('at', '>=', since)
    .$if(after !== undefined, query => query.where(sql<boolean>`(at, id) < (${after?.at}, ${after?.id})`))
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

/** Finds when each launch got its last token. One that got none is left out. */
export async function findLastTokens(
  { trail }: Pick<Store, 'trail'>,
  launches: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (launches.length === 0) return new Map()
  const parts = launches.map(
    launch => sql`select * from (select launch_id, at from audit_event where launch_id = ${launch} and ${OAUTH}
      and kind in ('token', 'refresh') and allowed = true order by at desc, id desc limit 1) as found`,
  )
  const db = await trail.read()
  const rows = await db
    .selectFrom(sql<LastToken>`(${sql.join(parts, sql` union all `)})`.as('token'))
    .selectAll()
    .execute()
  return new Map(rows.map(({ launch_id, at }) => [launch_id, Number(at)]))
}

interface LastToken {
  readonly launch_id: string
  readonly at: number
}

/** Lists the clients and patients of the newest records. */
export async function listParties({ trail }: Store): Promise<Parties> {
  const newest = sql<Party>`(select client_id, patient_id from audit_event order by at desc, id desc limit ${READ_FOR_PAGE})`
  const db = await trail.read()
  const rows = await db.selectFrom(newest.as('found')).selectAll().distinct().execute()
  return {
    clients: [...new Set(rows.flatMap(row => row.client_id ?? []))],
    patients: [...new Set(rows.flatMap(row => row.patient_id ?? []))],
  }
}

type Party = Pick<KeptRecord, 'client_id' | 'patient_id'>

export interface Parties {
  readonly clients: readonly string[]
  readonly patients: readonly string[]
}

export interface Counts {
  readonly records: number
  /** Requests, with those that a record represents. */
  readonly allowed: number
  readonly refused: number
}

/** Undefined if a bounded amount of work does not suffice. */
export async function countRecords(store: Store, filter: RecordFilter): Promise<Counts | undefined> {
  const db = await store.trail.read()
  const chosen = await plan(db, filter)
  const read = limitRead(chosen, MAX_COUNTED)
  if (await findEnd(db, chosen, filter, read)) return undefined
  const rows = await readRecords(db, chosen, filter, read)
    .select(({ fn }) => [
      'allowed',
      fn.countAll().as('records'),
      sql`sum(coalesce(repeats, 1))`.as('requests'),
    ])
    .groupBy('allowed')
    .execute()
  const refused = rows.find(row => !row.allowed)
  const allowed = rows.find(row => row.allowed)
  return {
    records: Number(allowed?.records ?? 0) + Number(refused?.records ?? 0),
    allowed: Number(allowed?.requests ?? 0),
    refused: Number(refused?.requests ?? 0),
  }
}

interface Plan {
  readonly driver: readonly IndexRange[]
  readonly rest: readonly RawBuilder<boolean>[]
}

/**
 * The term that limits access, or that has the fewest rows in an index, drives the search. Its rows are compared with
 * the other terms.
 */
async function plan(db: Database, filter: FindBounds & RecordFilter): Promise<Plan> {
  const terms = listTerms(filter)
  const access = terms.find(({ limitsAccess }) => limitsAccess)
  const indexed = access ? [access] : terms.filter(({ ranges }) => ranges)
  const sizes = indexed.length < 2 ? [0] : await Promise.all(indexed.map(term => countRows(db, term, filter)))
  const best = indexed[sizes.indexOf(Math.min(...sizes))]
  const rest = terms.filter(term => term !== best || term.hasOthers)
  return { driver: best?.ranges ?? EVERYTHING, rest: rest.map(({ condition }) => condition) }
}

/** Counts up to the limit of a page. */
async function countRows(db: Database, { ranges = [] }: Term, bounds: FindBounds): Promise<number> {
  const { count } = await selectFrom(db, selectKeys(ranges, bounds, READ_FOR_PAGE))
    .select(({ fn }) => fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** The last row that is read, if there may be others. */
function findEnd(db: Database, { driver }: Plan, bounds: FindBounds, read: number) {
  return selectFrom(db, selectKeys(driver, bounds, read))
    .select(['page.at', 'page.id'])
    .orderBy('page.at', chooseDirection(bounds))
    .orderBy('page.id', chooseDirection(bounds))
    .limit(1)
    .offset(read - 1)
    .executeTakeFirst()
}

type FindBounds = Pick<FindOptions, 'since' | 'before' | 'after' | 'order'>

/** The positions of the first rows of the ranges. A limit of its own keeps each range in its index. */
function selectKeys(ranges: readonly IndexRange[], bounds: FindBounds, limit: number): RawBuilder<unknown> {
  if (ranges.length === 0) return sql`select at, id from audit_event where false`
  const parts = ranges.map(range => sql`select at, id from (${selectRange(range, bounds, limit)}) as found`)
  return sql`select at, id from (${unite(parts)}) as found
    order by at ${sql.raw(chooseDirection(bounds))}, id ${sql.raw(chooseDirection(bounds))} limit ${limit}`
}

/** SQLite unites up to 500 selects. */
const UNITED = 250

function unite(parts: readonly RawBuilder<unknown>[]): RawBuilder<unknown> {
  if (parts.length <= UNITED) return sql.join(parts, sql` union `)
  const half = Math.ceil(parts.length / 2)
  const halves = [parts.slice(0, half), parts.slice(half)]
  return unite(halves.map(some => sql`select at, id from (${unite(some)}) as found`))
}

function selectRange(
  { table, condition }: IndexRange,
  bounds: FindBounds,
  limit: number,
): RawBuilder<unknown> {
  const { since, before, after, order } = bounds
  const id = sql.ref(table === 'audit_event' ? 'id' : 'audit_id')
  const beyond = order === 'oldest' ? sql`>` : sql`<`
  const conditions = [
    condition,
    ...(since === undefined ? [] : [sql`at >= ${since}`]),
    ...(before === undefined ? [] : [sql`at < ${before}`]),
    ...(after === undefined ? [] : [sql`(at, ${id}) ${beyond} (${after.at}, ${after.id})`]),
  ]
  const direction = sql.raw(chooseDirection(bounds))
  return sql`select at, ${id} as id from ${sql.table(table)} where ${sql.join(conditions, sql` and `)}
    order by at ${direction}, ${id} ${direction} limit ${limit}`
}

function selectFrom(db: Database, keys: RawBuilder<unknown>) {
  return db.selectFrom(sql<TrailPosition>`(${keys})`.as('page'))
}

/**
 * Reads the records of the keys and compares them with the other terms. The limit keeps the terms out of the join, for
 * which PostgreSQL would use their indexes. SQLite never reorders a cross join: it would read all records, and look up
 * each of them among the keys.
 */
function readRecords(db: Database, { driver, rest }: Plan, bounds: FindBounds, read: number) {
  const records = sql<KeptRecord>`(select audit_event.* from (${selectKeys(driver, bounds, read)}) as page
    cross join audit_event where audit_event.id = page.id limit ${read})`
  return db.selectFrom(records.as('event')).where(({ and }) => and(rest))
}

function chooseDirection({ order }: FindBounds): 'asc' | 'desc' {
  return order === 'oldest' ? 'asc' : 'desc'
}
