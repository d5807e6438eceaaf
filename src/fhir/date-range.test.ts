import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { parseDateRange } from './date-range.ts'

const range = (text: string) => {
  const found = parseDateRange(text)
  return found && [new Date(found.low).toISOString(), new Date(found.high).toISOString()]
}

describe('parseDateRange', () => {
  const cases: readonly (readonly [string, string, string])[] = [
    ['2020', '2020-01-01T00:00:00.000Z', '2020-12-31T23:59:59.999Z'],
    ['2020-02', '2020-02-01T00:00:00.000Z', '2020-02-29T23:59:59.999Z'],
    ['2020-12-31', '2020-12-31T00:00:00.000Z', '2020-12-31T23:59:59.999Z'],
    ['2020-05-04T10:20', '2020-05-04T10:20:00.000Z', '2020-05-04T10:20:59.999Z'],
    ['2020-05-04T10:20:30', '2020-05-04T10:20:30.000Z', '2020-05-04T10:20:30.999Z'],
    ['2020-05-04T10:20:30+02:00', '2020-05-04T08:20:30.000Z', '2020-05-04T08:20:30.999Z'],
    ['2020-05-04T10:20:30-05:30', '2020-05-04T15:50:30.000Z', '2020-05-04T15:50:30.999Z'],
    ['2020-05-04T10:20:30.5Z', '2020-05-04T10:20:30.500Z', '2020-05-04T10:20:30.599Z'],
    ['2020-05-04T10:20:30.123Z', '2020-05-04T10:20:30.123Z', '2020-05-04T10:20:30.123Z'],
    ['2020-05-04T10:20:30.123456Z', '2020-05-04T10:20:30.123Z', '2020-05-04T10:20:30.123Z'],
    ['2020-05-04T10:20:30.123456789012Z', '2020-05-04T10:20:30.123Z', '2020-05-04T10:20:30.123Z'],
    ['0050', '0050-01-01T00:00:00.000Z', '0050-12-31T23:59:59.999Z'],
  ]
  for (const [text, low, high] of cases) {
    it(`reads ${text} as the whole range that it covers`, () => assert.deepEqual(range(text), [low, high]))
  }

  for (const text of [
    '',
    '20',
    '0000',
    '2020-13',
    '2020-00',
    '2020-2-1',
    '2021-02-29',
    '2020-04-31',
    '2020-05-04T',
    '2020-05-04T25:00',
    '2020-05-04T10',
    '2020-05-04T10:60',
    '2020-05-04T10:20:61',
    '2020-05-04T10:20:30+15:00',
    '2020Z',
    ' 2020',
    '2020-05-04 10:20',
    'today',
  ]) {
    it(`does not read ${JSON.stringify(text)}`, () => assert.equal(parseDateRange(text), undefined))
  }

  it('agrees with Date on every instant', () => {
    const dates = fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
    fc.assert(
      fc.property(dates, date => {
        assert.deepEqual(parseDateRange(date.toISOString()), { low: date.getTime(), high: date.getTime() })
      }),
    )
  })

  it('covers a day by its hours and a year by its months', () => {
    const days = fc.date({ min: new Date('1900-01-01'), max: new Date('2100-12-31'), noInvalidDate: true })
    fc.assert(
      fc.property(days, date => {
        const [day, month, year] = [10, 7, 4].map(length =>
          parseDateRange(date.toISOString().slice(0, length)),
        )
        assert.ok(day && month && year)
        assert.ok(year.low <= month.low && month.low <= day.low && day.low <= date.getTime())
        assert.ok(date.getTime() <= day.high && day.high <= month.high && month.high <= year.high)
      }),
    )
  })
})
