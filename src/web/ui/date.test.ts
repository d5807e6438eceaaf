import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  findDayStart,
  formatAge,
  formatDate,
  formatLength,
  formatTime,
  parseDay,
  readZone,
  renderDate,
  renderDateTime,
  renderMoment,
  renderSince,
  type When,
} from './index.ts'

const NOON = Date.UTC(2026, 10, 13, 12, 4, 52)

describe('formatLength', () => {
  for (const [seconds, text] of [
    [1, '1 second'],
    [45, '45 seconds'],
    [60, '1 minute'],
    [75, '1 minute and 15 seconds'],
    [1800, '30 minutes'],
    [3600, '1 hour'],
    [5400, '90 minutes'],
    [28_800, '8 hours'],
  ] as const)
    it(`says exactly how long ${seconds} s are: ${text}`, () => assert.equal(formatLength(seconds), text))
})

describe('formatDate', () => {
  const cases: readonly (readonly [when: When | undefined, zone: string, text: string])[] = [
    ['1958-03-14', 'UTC', '14-Mar-1958'],
    ['1958-03-04', 'UTC', '04-Mar-1958'],
    ['1958-03', 'UTC', 'Mar 1958'],
    ['1958', 'UTC', '1958'],
    ['2024-02-29', 'UTC', '29-Feb-2024'],
    ['2023-02-29', 'UTC', 'Not recorded'],
    ['1958-13-01', 'UTC', 'Not recorded'],
    ['1958-00-01', 'UTC', 'Not recorded'],
    ['14/03/1958', 'UTC', 'Not recorded'],
    ['', 'UTC', 'Not recorded'],
    [undefined, 'UTC', 'Not recorded'],
    [Number.NaN, 'UTC', 'Not recorded'],
    [NOON, 'UTC', '13-Nov-2026'],
    ['2026-11-13T23:30:00Z', 'UTC', '13-Nov-2026'],
    ['2026-11-13T23:30:00Z', 'Europe/Berlin', '14-Nov-2026'],
    ['2026-11-13T01:30:00+05:00', 'America/New_York', '12-Nov-2026'],
    ['1958-03-14', 'Pacific/Auckland', '14-Mar-1958'],
    ['2026-11-13Tnonsense', 'UTC', 'Not recorded'],
  ]
  for (const [when, zone, text] of cases) {
    it(`writes ${JSON.stringify(when)} in ${zone} as ${text}`, () => {
      assert.equal(formatDate(when, zone), text)
    })
  }
})

describe('renderDate', () => {
  it('adds the machine-readable date', () => {
    assert.equal(renderDate('1958-03-04', 'UTC').markup, '<time datetime="1958-03-04">04-Mar-1958</time>')
    assert.equal(renderDate('1958-03', 'UTC').markup, '<time datetime="1958-03">Mar 1958</time>')
    assert.equal(renderDate('1958', 'UTC').markup, '<time datetime="1958">1958</time>')
  })

  it('marks a missing date', () => {
    assert.equal(renderDate(undefined).markup, '<span class="unknown">Not recorded</span>')
  })
})

describe('formatTime', () => {
  const cases: readonly (readonly [when: When | undefined, zone: string, text: string])[] = [
    [NOON, 'UTC', '12:04'],
    [NOON, 'Asia/Kolkata', '17:34'],
    [Date.UTC(2026, 0, 1, 0, 5), 'UTC', '00:05'],
    ['2026-11-13T14:04:52+01:00', 'Europe/Berlin', '14:04'],
    ['2026-11-13', 'UTC', ''],
    [undefined, 'UTC', ''],
  ]
  for (const [when, zone, text] of cases) {
    it(`writes ${JSON.stringify(when)} in ${zone} as ${JSON.stringify(text)}`, () => {
      assert.equal(formatTime(when, { zone }), text)
    })
  }

  it('includes seconds on request', () => {
    assert.equal(formatTime(NOON, { seconds: true, zone: 'UTC' }), '12:04:52')
  })
})

describe('renderDateTime', () => {
  it('includes the time only if it is known', () => {
    assert.equal(
      renderDateTime('2026-11-13T12:04:00Z', 'UTC').markup,
      '<time datetime="2026-11-13T12:04:00.000Z" data-moment="minutes">13-Nov-2026 12:04 UTC</time>',
    )
    assert.equal(renderDateTime('2026-11-13', 'UTC').markup, '<time datetime="2026-11-13">13-Nov-2026</time>')
  })
})

describe('renderMoment', () => {
  it('marks a moment for the script that shows it in the zone of the reader', () => {
    const time = (form: string, text: string) =>
      `<time datetime="2026-11-13T12:04:52.000Z" data-moment="${form}">${text}</time>`
    assert.equal(renderDateTime(NOON, 'UTC').markup, time('minutes', '13-Nov-2026 12:04 UTC'))
    for (const [form, text] of [
      ['date', '13-Nov-2026'],
      ['clock', '12:04'],
      ['time', '12:04 UTC'],
      ['seconds', '13-Nov-2026 12:04:52 UTC'],
      ['milliseconds', '12:04:52.000'],
    ] as const)
      assert.equal(renderMoment(NOON, { form, zone: 'UTC' }).markup, time(form, text))
  })
})

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

describe('renderSince', () => {
  it('has the date only if it was another day, and always the zone', () => {
    const now = Date.UTC(2026, 10, 13, 14, 4)
    assert.match(renderSince(Date.UTC(2026, 10, 13, 9, 5), now, 'UTC').markup, />09:05 UTC</)
    assert.match(renderSince(Date.UTC(2026, 10, 12, 23, 59), now, 'UTC').markup, />12-Nov-2026 23:59 UTC</)
  })
})

describe('the name of a time zone', () => {
  for (const [zone, name] of [
    ['UTC', 'UTC'],
    ['Europe/Berlin', 'CET'],
    ['America/New_York', 'EST'],
    ['America/Los_Angeles', 'PST'],
    ['Australia/Sydney', 'AEDT'],
    ['Asia/Kolkata', 'IST'],
    ['Asia/Dubai', 'GST'],
  ] as const)
    it(`is ${name} in ${zone}`, () => {
      const now = Date.UTC(2026, 10, 13, 14, 4)
      assert.match(renderSince(now, now, zone).markup, new RegExp(` ${name}<`))
    })
})

describe('findDayStart', () => {
  const iso = (at: number | undefined) => at !== undefined && new Date(at).toISOString()

  it('is midnight in the zone, also where the clocks change at midnight', () => {
    for (const [at, zone, start] of [
      ['2026-11-13T23:30:00Z', 'UTC', '2026-11-13T00:00:00.000Z'],
      ['2026-11-13T23:30:00Z', 'Asia/Kolkata', '2026-11-13T18:30:00.000Z'],
      ['2026-11-13T02:00:00Z', 'America/New_York', '2026-11-12T05:00:00.000Z'],
      // The clocks change later on the day.
      ['2026-03-29T12:00:00Z', 'Europe/Berlin', '2026-03-28T23:00:00.000Z'],
      ['2026-10-25T12:00:00Z', 'Europe/Berlin', '2026-10-24T22:00:00.000Z'],
      // They go forward at midnight, to one o'clock.
      ['2018-11-04T12:00:00Z', 'America/Sao_Paulo', '2018-11-04T03:00:00.000Z'],
      // They go back at midnight, to eleven o'clock of the day before.
      ['2018-02-18T12:00:00Z', 'America/Sao_Paulo', '2018-02-18T03:00:00.000Z'],
    ] as const)
      assert.equal(iso(findDayStart(Date.parse(at), zone)), start, `${at} ${zone}`)
    assert.equal(iso(findDayStart(Date.UTC(2026, 10, 30), 'UTC', 1)), '2026-12-01T00:00:00.000Z')
    assert.equal(iso(findDayStart(Date.UTC(2026, 10, 1), 'UTC', -1)), '2026-10-31T00:00:00.000Z')
  })

  it('reads a day, and nothing else', () => {
    assert.equal(iso(parseDay('2026-11-13', 'Asia/Kolkata')), '2026-11-12T18:30:00.000Z')
    assert.equal(iso(parseDay('2026-12-31', 'UTC', 1)), '2027-01-01T00:00:00.000Z')
    for (const text of ['2026-02-31', '2026-11', '13.11.2026', ''])
      assert.equal(parseDay(text, 'UTC'), undefined)
  })
})

describe('readZone', () => {
  it('takes the zone of the browser if there is such a place', () => {
    const own = readZone({})
    assert.equal(readZone({ 'sallyport-zone': 'Asia/Tokyo' }), 'Asia/Tokyo')
    assert.equal(readZone({ 'sallyport-zone': 'europe/berlin' }), 'Europe/Berlin')
    for (const name of ['Nowhere/City', '+05:30', '', '<script>', 'x'.repeat(5000)])
      assert.equal(readZone({ 'sallyport-zone': name }), own, name)
  })
})
