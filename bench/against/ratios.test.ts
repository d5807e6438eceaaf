import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formatTable } from '../shared/report.ts'
import { compareFigures, findInterval, makeTable, readFigures, type Turn } from './ratios.ts'

const turn = (before: number, now: number): Turn => ({
  before: new Map([
    ['code', before],
    ['old', 1],
  ]),
  now: new Map([
    ['code', now],
    ['new', 1],
  ]),
})

describe('readFigures', () => {
  it('names CPU times by the cells before them, and reads thousands', () => {
    const peers = {
      name: 'peers',
      header: ['request', 'server', 'CPU (µs)', 'requests/s'],
      rows: [['code', 'Sallyport', '1,328', '1,062']],
    }
    const values = {
      name: 'values',
      header: ['measured', 'value', 'limit'],
      rows: [['launch', '14.7', '15']],
    }
    assert.deepEqual(
      [...readFigures([peers, values])],
      [
        ['code: Sallyport', 1328],
        ['launch', 14.7],
      ],
    )
  })
})

describe('compareFigures', () => {
  it('takes the median of the ratios of the turns, not the ratio of the medians', () => {
    const [code] = compareFigures([turn(100, 110), turn(200, 220), turn(300, 310)])
    assert.equal(code?.ratio, 1.1)
    assert.deepEqual([code?.before, code?.now, code?.turns], [200, 220, 3])
  })

  it('leaves out what only one of the trees measures', () => {
    const names = compareFigures([turn(1, 1)]).map(({ name }) => name)
    assert.deepEqual(names, ['code'])
  })

  it('prints the ratio with its interval', () => {
    const table = formatTable(makeTable(compareFigures([turn(1000, 1100), turn(1000, 1050), turn(10, 12)])))
    assert.match(table, /^\| code \| 1,000 \| 1,050 \| 1\.10 \| 1\.05–1\.20 \| 3 \|$/m)
  })
})

describe('findInterval', () => {
  it('leaves out values at both ends only if 90 % remain likely', () => {
    const count = (values: number) => Array.from({ length: values }, (_, at) => at + 1)
    assert.deepEqual(findInterval(count(5)), [1, 5])
    assert.deepEqual(findInterval(count(7)), [1, 7])
    assert.deepEqual(findInterval(count(8)), [2, 7])
    assert.deepEqual(findInterval(count(11)), [3, 9])
  })
})
