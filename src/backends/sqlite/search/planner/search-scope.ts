import { setImmediate } from 'node:timers/promises'
import { remember } from '../../../../core/index.ts'
import { type DateRange, failFor, type TypeQuery, type Work } from '../../../../fhir/index.ts'
import type { Failure, FhirRequest } from '../../../../fhir-api/index.ts'
import type { Access, AccessFilter, Permission } from '../../../../smart/index.ts'
import { CONDITION_ROWS, ROWS_OF_PARAMETER, ROWS_OF_VALUE, STEP_ROWS, STEP_WORK } from '../../limits.ts'
import type { Database } from '../../repository/database.ts'
import type { Names } from '../../repository/names.ts'
import type { Repository } from '../../repository/repository.ts'
import { countSubqueries, countValues } from './count-values.ts'
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
  /** The work of a step, in rows: a row that is compared with many values counts as several. */
  readonly stepWork: number
  /** Only the compartment of this patient (`Patient/1/Condition`). */
  readonly compartment?: string | undefined
  /** Only resources whose dates of care overlap this range. */
  readonly care?: DateRange | undefined
}

const FEW = 2000

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
    step: STEP_ROWS,
    stepWork: STEP_ROWS,
  }
}

/** The scope of one query: the more values each row is compared with, the fewer rows a step reads. */
export function fitStep(scope: SearchScope, { type, clauses }: TypeQuery): SearchScope {
  const filter = scope.filter(type)
  const granted = listGranted(filter)
  const subjects = (filter === 'everything' ? 0 : 1) + (scope.compartment === undefined ? 0 : 1)
  const parameters = sum(clauses.map(countSubqueries)) + granted.length + subjects * SUBQUERIES_OF_SUBJECT
  const values = sum(clauses.map(countValues)) + sum(granted)
  const work = 1 + parameters * ROWS_OF_PARAMETER + values * ROWS_OF_VALUE
  const step = Math.min(scope.step, Math.max(1, Math.floor(STEP_WORK / work)))
  // SQLite reads the statement of each step anew.
  return { ...scope, step, stepWork: Math.ceil(step * work) + parameters + values }
}

/** The subqueries by which a row is found to be of a patient. */
const SUBQUERIES_OF_SUBJECT = 2

/** The number of values of each parameter of a granular filter. */
function listGranted(filter: AccessFilter): readonly number[] {
  if (filter === 'everything') return []
  return filter.flatMap(({ query = [] }) => query.map(([, value]) => value.split(',').length))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, it) => all + it, 0)
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

/**
 * Work that can pause between its steps, so that a long search does not keep the event loop busy. It yields the work of the
 * step to come, in rows.
 */
export type Steps<T> = Generator<number, T, undefined>

/** Does all steps at once. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/** Does all steps at once, up to so many rows; undefined if more are needed. */
export function finishWithin<T>(steps: Steps<T>, work: Work, most = CONDITION_ROWS): T | undefined | Failure {
  for (let left = most; left > 0; ) {
    const step = steps.next()
    if (step.done) return step.value
    left -= step.value
    const excess = work.count('row', step.value)
    if (excess) return excess
  }
  return undefined
}

/** Reads one state of the file in each step: a resource is loaded as it was when it was found. */
export function* takeSnapshots<T>(database: Database, steps: Steps<T>): Steps<T> {
  for (;;) {
    const step = database.snapshot(() => steps.next())
    if (step.done) return step.value
    yield step.value
  }
}

/** Counts the statements of each step, beside the rows that it was counted for. */
export function* countStatements<T>(database: Database, steps: Steps<T>, work: Work): Steps<T> {
  for (;;) {
    const before = database.statementCount
    const step = steps.next()
    work.count('statement', database.statementCount - before)
    if (step.done) return step.value
    yield step.value
  }
}

/** Whether there was a pause, in which others may have written. */
export function* noticePauses<T>(
  steps: Steps<T>,
): Steps<{ readonly result: T; readonly hasPaused: boolean }> {
  for (let hasPaused = false; ; hasPaused = true) {
    const step = steps.next()
    if (step.done) return { result: step.value, hasPaused }
    yield step.value
  }
}

type Caller = Pick<FhirRequest, 'work'> & {
  readonly connection: Pick<FhirRequest['connection'], 'destroyed'>
}

/**
 * Does the first step at once, and the others in later turns of the event loop: as long as the request has work left, and none
 * after the client has closed the connection.
 */
export function finishInTurns<T>(steps: Steps<T>, caller: Caller): T | Failure | Promise<T | Failure> {
  const step = steps.next()
  return step.done ? step.value : continueInTurns(steps, caller, step.value)
}

async function continueInTurns<T>(
  steps: Steps<T>,
  { connection, work }: Caller,
  first: number,
): Promise<T | Failure> {
  for (let rows = first; ; ) {
    const excess = work.count('row', rows)
    if (excess) return excess
    await waitForTurn()
    work.beginTurn()
    if (connection.destroyed) return CLIENT_GONE
    const step = steps.next()
    if (step.done) return step.value
    rows = step.value
  }
}

const CLIENT_GONE = failFor('client-gone-from-search')

let lastTurn: Promise<unknown> = Promise.resolve()

/** In each turn of the event loop, only one search takes a step, however many are waiting. */
function waitForTurn(): Promise<unknown> {
  lastTurn = lastTurn.then(() => setImmediate())
  return lastTurn
}
