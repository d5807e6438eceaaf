import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, describe, it } from 'node:test'
import { isFailure } from '../../../../core/index.ts'
import { isExcess, parseQuery, Work } from '../../../../fhir/index.ts'
import { fullAccess } from '../../../../smart/index.ts'
import type { Repository } from '../../repository/repository.ts'
import { openRepository } from '../../repository/repository.ts'
import { BASE, condition, patient, patientAccess } from '../../testing/fhir.ts'
import { findIncludes } from '../includes.ts'
import { type Hit, runQuery } from './run-query.ts'
import { createSearchScope, finish, finishInTurns, type Steps, takeSnapshots } from './search-scope.ts'

function* takeSteps(count: number, take = () => {}): Steps<string> {
  for (let step = 1; step < count; step++) {
    take()
    yield 500
  }
  take()
  return 'found'
}

const makeCaller = (connection = { destroyed: false }, units?: number) => ({
  connection,
  work: new Work(units),
})

describe('a search in steps', () => {
  it('returns its result, at once if it takes one step', async () => {
    assert.equal(finishInTurns(takeSteps(1), makeCaller()), 'found')
    assert.equal(await finishInTurns(takeSteps(3), makeCaller()), 'found')
  })

  it('is too costly if it takes more work than the request has left', async () => {
    assert.equal(await finishInTurns(takeSteps(3), makeCaller(undefined, 2_000)), 'found')
    const failure = await finishInTurns(takeSteps(4), makeCaller(undefined, 2_000))
    assert(isFailure(failure) && isExcess(failure))
  })

  it('ends when the client has closed the connection (LIMIT-5)', async () => {
    const connection = { destroyed: false }
    let taken = 0
    const take = () => {
      connection.destroyed = ++taken === 3
    }
    const failure = await finishInTurns(takeSteps(9, take), makeCaller(connection))
    assert(isFailure(failure) && isExcess(failure))
    assert.equal(taken, 3)
  })

  it('takes one step in a turn of the event loop, together with all others (LIMIT-5)', async () => {
    let [taken, most] = [0, 0]
    const searches = [1, 2, 3].map(() =>
      finishInTurns(
        takeSteps(4, () => taken++),
        makeCaller(),
      ),
    )
    let before = taken
    const countSteps = () => {
      most = Math.max(most, taken - before)
      before = taken
      turn = setImmediate(countSteps)
    }
    let turn = setImmediate(countSteps)
    await Promise.all(searches)
    clearImmediate(turn)
    assert.deepEqual([taken, most], [12, 1])
  })
})

describe('a write between two steps of a search', () => {
  const folder = mkdtempSync(join(tmpdir(), 'steps-'))
  const access = patientAccess('ann')
  const ids = ['c1', 'c2', 'c3', 'c4', 'c5', 'c6']
  let files = 0
  let repository: Repository
  beforeEach(() => {
    repository?.close()
    repository = openRepository({ file: join(folder, `${files++}.db`), baseUrl: BASE })
    repository.load([patient('ann'), patient('bob'), ...ids.map(id => condition(id, 'ann'))])
  })
  after(() => {
    repository.close()
    rmSync(folder, { recursive: true })
  })

  const scope = (its = access) => ({
    ...createSearchScope(repository, its, 's'),
    isFew: () => false,
    step: 2,
  })

  function parse(type: string, search: Readonly<Record<string, string>>) {
    const query = parseQuery([type], Object.entries(search), {
      baseUrl: BASE,
      lenient: false,
      work: new Work(),
    })
    assert(!isFailure(query))
    return query
  }

  function removeResource(type: string, id: string): void {
    const stored = repository.find(type, id)
    assert(stored)
    repository.remove(stored)
  }

  /** Writes after the first step. */
  function finishWithWrite<T>(steps: Steps<T>, write: () => void): T {
    assert(!steps.next().done)
    write()
    return finish(steps)
  }

  const list = (hits: readonly Hit[]) => hits.map(({ id }) => id)

  it('shows no resource that has left the access, was deleted or no longer matches (LIMIT-6)', () => {
    const query = parse('Condition', { 'recorded-date:missing': 'true' })
    const { hits, next } = finishWithWrite(runQuery(scope(), query, undefined), () => {
      repository.load([condition('c1', 'bob'), condition('c3', 'ann', { recordedDate: '2026-01-01' })])
      removeResource('Condition', 'c2')
    })
    assert.deepEqual(list(hits), ['c4', 'c5', 'c6'])
    assert.equal(next, undefined)
  })

  it('shows a resource whose position changes once, and the others on the next page (LIMIT-6)', () => {
    repository.load(ids.map((id, at) => condition(id, 'ann', { recordedDate: `2026-01-0${at + 1}` })))
    const query = parse('Condition', { 'onset-date:missing': 'true', _sort: 'recorded-date', _count: '4' })
    const first = finishWithWrite(runQuery(scope(fullAccess), query, undefined), () => {
      repository.load([condition('c1', 'ann', { recordedDate: '2026-01-03T12:00:00Z' })])
    })
    const second = finish(runQuery(scope(fullAccess), query, first.next))
    assert.deepEqual([...list(first.hits), ...list(second.hits)].toSorted(), ids)
  })

  it('includes no resource that has left the access or was deleted (LIMIT-6)', () => {
    const [rule] = parse('Patient', { _revinclude: 'Condition:patient' }).includes
    const { hits } = finish(runQuery(scope(), parse('Patient', { _id: 'ann' }), undefined))
    assert(rule)
    const included = finishWithWrite(findIncludes(scope(), access, [rule], hits), () => {
      repository.load([condition('c1', 'bob'), condition('c3', 'bob')])
      removeResource('Condition', 'c4')
    })
    assert(!isFailure(included))
    assert.deepEqual(list(included), ['c1', 'c2', 'c5', 'c6'])
    assert.ok(included.every(({ content }) => JSON.parse(content).subject.reference === 'Patient/ann'))
  })

  it('shows a resource as it was when another process writes between two statements (LIMIT-6)', test => {
    const { database } = repository
    const other = openRepository({ file: database.file, baseUrl: BASE })
    const read = database.rows.bind(database)
    test.mock.method(database, 'rows', (...statement: Parameters<typeof read>) => {
      const found = read(...statement)
      other.load([condition('c1', 'bob')])
      return found
    })
    const watched = { ...scope(), isFew: () => true, step: 9 }
    const { hits } = finish(takeSnapshots(database, runQuery(watched, parse('Condition', {}), undefined)))
    other.close()
    assert.deepEqual(list(hits), ids)
    assert.ok(hits.every(({ content }) => JSON.parse(content).subject.reference === 'Patient/ann'))
  })
})
