import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createProgress } from './progress.ts'

function watch(options: { isTTY?: boolean; columns?: number }, steps: readonly [ms: number, read: number][]) {
  const written: string[] = []
  let now = 1000
  const progress = createProgress({ ...options, write: text => written.push(text) }, () => now)
  for (const [ms, read] of steps) {
    now += ms
    progress.show({ read, total: 1000, resources: read * 10 })
  }
  progress.end()
  return written
}

describe('createProgress', () => {
  it('draws a bar on a terminal, at most ten times a second, and clears it', () => {
    const written = watch({ isTTY: true, columns: 80 }, [
      [50, 100],
      [60, 250],
      [20, 300],
      [890, 1000],
    ])
    assert.deepEqual(written, [
      `\r[${'#'.repeat(10)}${'-'.repeat(30)}] 25 %  2,500 resources  22,727/s\x1b[K`,
      `\r[${'#'.repeat(40)}] 100 %  10,000 resources  9,804/s\x1b[K`,
      '\r\x1b[K',
    ])
  })

  it('assumes 80 columns if the terminal width is unknown', () => {
    const [line = ''] = watch({ isTTY: true, columns: 0 }, [[100, 500]])
    assert.match(line, /^\r\[#{20}-{20}\] 50 %/)
  })

  it('omits the bar if the terminal is too narrow', () => {
    const [line = ''] = watch({ isTTY: true, columns: 30 }, [[100, 500]])
    assert.equal(line, '\r50 %  5,000 resources  50,000/s\x1b[K')
  })

  it('writes occasional plain lines elsewhere, and nothing for a quick import', () => {
    assert.deepEqual(watch({}, [[4000, 900]]), [])
    const written = watch({}, [
      [4000, 400],
      [1000, 500],
      [100, 510],
    ])
    assert.deepEqual(written, ['50 %  5,000 resources  1,000/s\n'])
  })
})
