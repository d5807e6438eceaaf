import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findUnexplained } from './explained.ts'
import { type Compared, compareFigures } from './ratios.ts'

const compared = compareFigures([
  {
    before: new Map([
      ['code: Sallyport', 100],
      ['launch: CPU (ms)', 10],
      ['refresh: Sallyport', 100],
    ]),
    now: new Map([
      ['code: Sallyport', 110],
      ['launch: CPU (ms)', 12],
      ['refresh: Sallyport', 111],
    ]),
  },
])
const findNames = (changes: string) => findUnexplained(compared, changes).map(({ name }: Compared) => name)

describe('findUnexplained', () => {
  it('lists the figures above 1.10', () => {
    assert.deepEqual(findNames('- Faster: `refresh`'), ['launch: CPU (ms)', 'refresh: Sallyport'])
  })

  it('leaves out a figure that varies so much that it may be as fast as before', () => {
    const turns = [90, 130, 95, 125, 120].map(now => ({
      before: new Map([['code', 100]]),
      now: new Map([['code', now]]),
    }))
    assert.equal(compareFigures(turns)[0]?.ratio, 1.2)
    assert.deepEqual(findUnexplained(compareFigures(turns), ''), [])
  })

  it('accepts a line of the changes that names the figure, or the request', () => {
    assert.deepEqual(findNames('### Speed\n- Slower: `refresh` checks more.'), ['launch: CPU (ms)'])
    assert.deepEqual(findNames('- Slower: `refresh` and `launch: CPU (ms)` check more.'), [])
  })

  it('accepts no line that only mentions a figure', () => {
    assert.equal(findNames('- A `refresh` is logged. Slower: `refresh`').length, 2)
    assert.equal(findNames('- Slower: `ref`, refresh').length, 2)
  })
})
