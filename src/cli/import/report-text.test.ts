import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { counted, createProgress, formatReport } from './report-text.ts'

const nothing = {
  files: 1,
  created: 0,
  updated: 0,
  unchanged: 0,
  refused: 0,
  reasons: [],
  unreadable: [],
  unresolved: 0,
  notResources: 0,
}

const place = (line: number) => `a.ndjson:${line}`

describe('formatReport', () => {
  it('aligns the numbers', () => {
    assert.equal(
      formatReport({ ...nothing, files: 2, created: 12_345, unchanged: 7 }, 0, 2345),
      'Read 12,352 resources from 2 files in 2.3 s\n  created    12,345\n  updated         0\n  unchanged       7\n  refused         0\n',
    )
  })

  it('prints the first locations of a reason and notes that there are more', () => {
    const reasons = [
      { text: 'Patient.birthDate: Expected a date', count: 1200, places: [place(1), place(2), place(9)] },
      { text: 'Not JSON', count: 1, places: [place(4)] },
    ]
    const text = formatReport({ ...nothing, refused: 1201, reasons }, 0, 10)
    assert.match(
      text,
      /\n {2}1,200 x Patient\.birthDate: Expected a date \(a\.ndjson:1, a\.ndjson:2, a\.ndjson:9, …\)\n/,
    )
    assert.match(text, /\n {2}1 x Not JSON \(a\.ndjson:4\)\n/)
  })

  it('summarizes reasons beyond the twentieth', () => {
    const reasons = Array.from({ length: 25 }, (_, at) => ({ text: `R${at}`, count: 2, places: [place(at)] }))
    const text = formatReport({ ...nothing, refused: 50, reasons }, 0, 10)
    assert.match(text, /2 x R19 /)
    assert.doesNotMatch(text, /R20 /)
    assert.match(text, /\n {2}10 x for 5 other reasons\n/)
  })

  it('reports truncated files, unresolved references and skipped files', () => {
    const unreadable = [
      { file: 'a.gz', line: 12, reason: 'The gzip data are damaged' },
      { file: 'b.json', reason: 'Permission is denied' },
    ]
    const text = formatReport({ ...nothing, unreadable, unresolved: 1 }, 3, 10)
    assert.match(
      text,
      /\nCannot read a\.gz after line 12: The gzip data are damaged\nCannot read b\.json: Permission is denied\n/,
    )
    assert.match(text, /\nKept 1 conditional reference as written: /)
    assert.match(text, /\nSkipped 3 files not named /)
  })
})

describe('counted', () => {
  it('uses singular and plural', () => {
    assert.deepEqual(
      [counted(0, 'file'), counted(1, 'file'), counted(2000, 'file')],
      ['0 files', '1 file', '2,000 files'],
    )
  })
})

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
