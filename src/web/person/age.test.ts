import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formatAge } from '../index.ts'

const NOW = Date.UTC(2026, 10, 13, 14, 0)

describe('formatAge', () => {
  const cases: readonly (readonly [born: string | undefined, age: string])[] = [
    // Hours under 2 days, when the time of birth is recorded.
    ['2026-11-13T13:30:00Z', '0 hours'],
    ['2026-11-13T13:00:00Z', '1 hour'],
    ['2026-11-11T14:30:00Z', '47 hours'],
    ['2026-11-11T14:00:00Z', '2 days'],
    // Days under 4 weeks.
    ['2026-11-13', '0 days'],
    ['2026-11-12', '1 day'],
    ['2026-11-07', '6 days'],
    ['2026-10-17', '27 days'],
    // Weeks under 1 year.
    ['2026-10-16', '4 weeks'],
    ['2025-11-14', '52 weeks'],
    // Months under 2 years.
    ['2025-11-13', '12 months'],
    ['2025-09-08', '14 months'],
    ['2024-11-14', '23 months'],
    // Years and months under 18.
    ['2024-11-13', '2 y'],
    ['2024-10-13', '2 y 1 mo'],
    ['2023-05-02', '3 y 6 mo'],
    ['2009-10-03', '17 y 1 mo'],
    ['2008-11-14', '17 y 11 mo'],
    // Then years.
    ['2008-11-13', '18 years'],
    ['1991-02-09', '35 years'],
    ['1958-03-14', '68 years'],
    ['1926-11-13', '100 years'],
    ['2000-02-29', '26 years'],
    // Known in part: only as exact as the date.
    ['1958', 'About 68 years'],
    ['1958-03', '68 years'],
    ['1958-11', 'About 68 years'],
    ['2024-12', 'Under 2 years'],
    ['2026', 'Under 2 years'],
    ['2026-11', 'Under 2 years'],
    // Not at all.
    [undefined, 'Not known'],
    ['sometime', 'Not known'],
    ['2026-11-14', 'Not known'],
    ['2027', 'Not known'],
    ['2026-11-13T15:00:00Z', 'Not known'],
  ]
  for (const [born, age] of cases) {
    it(`is ${age} on 13-Nov-2026 for ${born}`, () => {
      assert.equal(formatAge(born, NOW, 'UTC'), age)
    })
  }

  it('counts to the day of death', () => {
    assert.equal(formatAge('1944-08-11', '2025-02-02', 'UTC'), '80 years')
    assert.equal(formatAge('1944-08-11', '2025', 'UTC'), 'About 81 years')
    assert.equal(formatAge('1944-08-11', '2025-09', 'UTC'), '81 years')
  })

  it('is a day higher in a time zone in which the day has begun', () => {
    const night = Date.UTC(2026, 10, 12, 23, 30)
    assert.equal(formatAge('2008-11-13', night, 'UTC'), '17 y 11 mo')
    assert.equal(formatAge('2008-11-13', night, 'Europe/Berlin'), '18 years')
  })

  it('adds a year on 1 March for a birth on 29 February', () => {
    assert.equal(formatAge('2004-02-29', '2022-02-28', 'UTC'), '17 y 11 mo')
    assert.equal(formatAge('2004-02-29', '2022-03-01', 'UTC'), '18 years')
  })
})
