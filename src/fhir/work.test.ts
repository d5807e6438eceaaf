import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { TURN_MS, WORK_UNITS } from './limits.ts'
import { describeFailed } from './reasons/reasons.ts'
import { runInTurns, Work } from './work.ts'

describe('the work of a request', () => {
  it('is refused when none is left, and from then on, with the advice of the first refusal (LIMIT-10)', () => {
    const work = new Work(1_000)
    assert.equal(work.count('row', 400), undefined)
    const failure = work.count('row', 101)
    assert(failure)
    assert.match(describeFailed(failure), /too much work\. Search by fewer values/)
    assert.equal(work.count('entry'), work.failure)
    assert.equal(work.failure, failure)
  })

  it('is enough for the largest Bundles of ordinary entries (LIMIT-10)', () => {
    const batch = new Work()
    const ofEntry = (kind: 'interaction' | 'write') =>
      batch.count('entry') ?? batch.count('parameter', 3) ?? batch.count(kind)
    for (let entry = 0; entry < 2_000; entry++) assert.equal(ofEntry('write'), undefined, `entry ${entry}`)
    assert.ok(WORK_UNITS > 0)
  })

  it('lets other requests run after a while, and not before', async () => {
    const work = new Work()
    work.beginTurn()
    assert.equal(work.pause(), undefined)
    const end = performance.now() + TURN_MS
    while (performance.now() < end);
    let others = 0
    setImmediate(() => others++)
    await work.pause()
    assert.equal(others, 1)
    assert.equal(work.pause(), undefined)
  })

  it('runs in turns to its result', async () => {
    function* count(): Generator<undefined, number> {
      for (let step = 0; step < 3; step++) yield
      return 3
    }
    assert.equal(await runInTurns(new Work(), count()), 3)
  })
})
