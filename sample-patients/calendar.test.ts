import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { bornOn, dateText, dayMs, instantText, momentOn, todayOf, weekday, yearsBetween } from './calendar.ts'

const day = (text: string) => Date.parse(`${text}T00:00:00Z`) / dayMs

describe('todayOf', () => {
  it('is the day and the last full hour', () => {
    const { day: today, hour } = todayOf(Date.parse('2026-11-13T13:59:59Z'))
    assert.equal(dateText(today), '2026-11-13')
    assert.equal(instantText(hour), '2026-11-13T13:00:00Z')
  })
})

describe('bornOn', () => {
  for (const [birthday, years, today, born] of [
    ['03-14', 68, '2026-11-13', '1958-03-14'],
    ['12-04', 87, '2026-11-13', '1938-12-04'],
    ['11-13', 40, '2026-11-13', '1986-11-13'],
    ['11-14', 40, '2026-11-13', '1985-11-14'],
  ] as const) {
    it(`lets someone of ${birthday} be ${years} on ${today}`, () => {
      const found = bornOn(birthday, years, day(today))
      assert.equal(dateText(found), born)
      assert.equal(yearsBetween(found, day(today)), years)
    })
  }
})

describe('weekday', () => {
  it('moves Saturday and Sunday to Monday and leaves the others', () => {
    const moved = ['2026-11-13', '2026-11-14', '2026-11-15', '2026-11-16'].map(text =>
      dateText(weekday(day(text))),
    )
    assert.deepEqual(moved, ['2026-11-13', '2026-11-16', '2026-11-16', '2026-11-16'])
  })
})

describe('momentOn', () => {
  it('counts minutes from midnight', () => {
    assert.equal(instantText(momentOn(day('2026-11-13'), 13 * 60 + 40)), '2026-11-13T13:40:00Z')
  })
})
