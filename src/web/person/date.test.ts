import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formatDate, formatTime, renderDate, renderDateTime, type When } from '../index.ts'

const NOON = Date.UTC(2026, 10, 13, 12, 4, 52)

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
      '<time datetime="2026-11-13">13-Nov-2026</time> 12:04 UTC',
    )
    assert.equal(renderDateTime('2026-11-13', 'UTC').markup, '<time datetime="2026-11-13">13-Nov-2026</time>')
  })
})
