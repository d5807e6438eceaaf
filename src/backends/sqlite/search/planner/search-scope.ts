import { setImmediate } from 'node:timers/promises'
import { fail, remember } from '../../../../core/index.ts'
import type { DateRange } from '../../../../fhir/index.ts'
import type { Failure, FhirRequest } from '../../../../fhir-api/index.ts'
import type { Access, AccessFilter, Permission } from '../../../../smart/index.ts'
import { SEARCH_STEPS } from '../../limits.ts'
import type { Database } from '../../repository/database.ts'
import type { Names } from '../../repository/names.ts'
import type { Repository } from '../../repository/repository.ts'
import { type Sql, sql } from './sql.ts'

/** The resources that a search may find. */
export interface SearchScope {
  readonly database: Database
  readonly names: Names
  readonly baseUrl: string
  /** The caller's access to a type. It also limits the resources that a chain passes through (ROUTE-4). */
  readonly filter: (type: string) => AccessFilter
  /** Whether a subquery returns so few rows that a search is fastest when it starts there. */
  readonly isFew: (rows: Sql, most?: number) => boolean
  /** How many rows of an index one step of a long search reads. */
  readonly step: number
  /** Only the compartment of this patient (`Patient/1/Condition`). */
  readonly compartment?: string | undefined
  /** Only resources whose dates of care overlap this range. */
  readonly care?: DateRange | undefined
}

const FEW = 2000
const STEP = 500

export function createSearchScope(
  { names, baseUrl, database }: Repository,
  access: Access,
  permission: Permission,
): SearchScope {
  return {
    database,
    names,
    baseUrl,
    filter: type => access.filterFor(type, permission),
    isFew: createProbe(database),
    step: STEP,
  }
}

/** Counts the rows of subqueries, each once, and no further than necessary. */
export function createProbe(database: Database): SearchScope['isFew'] {
  const known = new Map<string, boolean>()
  return (rows, most = FEW) => {
    const key = JSON.stringify([rows, most])
    return remember(known, key, () => countUpTo(database, rows, most + 1) <= most)
  }
}

/** The number of rows, up to `most`; a negative `most` means no limit. */
export function countUpTo(database: Database, rows: Sql, most = -1): number {
  const { text, values } = sql`SELECT count(*) FROM (SELECT 1 FROM (${rows}) LIMIT ${most})`
  return Number(database.rows(text, values)[0]?.[0])
}

/** Work that can pause between its steps, so that a long search does not keep the event loop busy. */
export type Steps<T> = Generator<undefined, T, undefined>

/** Does all steps at once. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/** Does up to `most` steps at once; undefined if more are needed. */
export function finishWithin<T>(steps: Steps<T>, most: number): T | undefined {
  for (let step = 0; step < most; step++) {
    const { done, value } = steps.next()
    if (done) return value
  }
  return undefined
}

/** Reads one state of the file in each step: a resource is loaded as it was when it was found. */
export function* takeSnapshots<T>(database: Database, steps: Steps<T>): Steps<T> {
  for (;;) {
    const { done, value } = database.snapshot(() => steps.next())
    if (done) return value
    yield
  }
}

/** Whether there was a pause, in which others may have written. */
export function* noticePauses<T>(
  steps: Steps<T>,
): Steps<{ readonly result: T; readonly hasPaused: boolean }> {
  for (let hasPaused = false; ; hasPaused = true) {
    const { done, value } = steps.next()
    if (done) return { result: value, hasPaused }
    yield
  }
}

type Connection = Pick<FhirRequest['connection'], 'destroyed'>

/**
 * Does the first step at once, and the others in later turns of the event loop: up to `most` steps, and none after the
 * client has closed the connection.
 */
export function finishInTurns<T>(
  steps: Steps<T>,
  connection: Connection,
  most = SEARCH_STEPS,
): T | Failure | Promise<T | Failure> {
  const { done, value } = steps.next()
  return done ? value : continueInTurns(steps, connection, most)
}

async function continueInTurns<T>(
  steps: Steps<T>,
  connection: Connection,
  most: number,
): Promise<T | Failure> {
  for (let step = 1; step < most; step++) {
    await waitForTurn()
    if (connection.destroyed) return CLIENT_GONE
    const { done, value } = steps.next()
    if (done) return value
  }
  return TOO_MANY_STEPS
}

const TOO_MANY_STEPS = fail({
  problem: 'too-costly',
  text: `Cannot complete the search: it reads more than ${(SEARCH_STEPS * STEP) / 1e6} million index rows. Add a parameter that fewer resources match`,
})

const CLIENT_GONE = fail({
  problem: 'too-costly',
  text: 'Cannot complete the search: the client has closed the connection',
})

let lastTurn: Promise<unknown> = Promise.resolve()

/** In each turn of the event loop, only one search takes a step, however many are waiting. */
function waitForTurn(): Promise<unknown> {
  lastTurn = lastTurn.then(() => setImmediate())
  return lastTurn
}
