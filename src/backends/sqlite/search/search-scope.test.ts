import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isFailure } from '../../../fhir-api/index.ts'
import { finishInTurns, type Steps } from './search-scope.ts'

function* takeSteps(count: number, take = () => {}): Steps<string> {
  for (let step = 1; step < count; step++) {
    take()
    yield
  }
  take()
  return 'found'
}

const open = { destroyed: false }

describe('a search in steps', () => {
  it('returns its result, at once if it takes one step', async () => {
    assert.equal(finishInTurns(takeSteps(1), open), 'found')
    assert.equal(await finishInTurns(takeSteps(3), open), 'found')
  })

  it('is too costly if it takes more steps than allowed', async () => {
    assert.equal(await finishInTurns(takeSteps(3), open, 3), 'found')
    const failure = await finishInTurns(takeSteps(4), open, 3)
    assert(isFailure(failure) && failure.problem === 'too-costly')
  })

  it('ends when the client has closed the connection', async () => {
    const connection = { destroyed: false }
    let taken = 0
    const take = () => {
      connection.destroyed = ++taken === 3
    }
    const failure = await finishInTurns(takeSteps(9, take), connection)
    assert(isFailure(failure) && failure.problem === 'too-costly')
    assert.equal(taken, 3)
  })

  it('takes one step in a turn of the event loop, together with all others', async () => {
    let [taken, most] = [0, 0]
    const searches = [1, 2, 3].map(() =>
      finishInTurns(
        takeSteps(4, () => taken++),
        open,
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
