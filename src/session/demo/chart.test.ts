import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Observation } from '../records/resources.ts'
import {
  findReadings,
  formatPressure,
  type Reading,
  renderPressureChart,
  selectRecentReadings,
} from './chart.ts'

function observation(systolic: number, diastolic: number, more: Partial<Observation> = {}): Observation {
  const part = (code: string, value: number) => ({
    code: { coding: [{ system: 'http://loinc.org', code }] },
    valueQuantity: { value, unit: 'mmHg', code: 'mm[Hg]' },
  })
  return {
    resourceType: 'Observation',
    status: 'final',
    effectiveDateTime: '2026-10-02T09:00:00Z',
    component: [part('8480-6', systolic), part('8462-4', diastolic)],
    ...more,
  }
}

describe('findReadings', () => {
  it('reads systolic, diastolic and the date as recorded', () => {
    assert.deepEqual(findReadings([observation(142, 84)]), [
      { at: Date.parse('2026-10-02T09:00:00Z'), date: '2026-10-02T09:00:00Z', systolic: 142, diastolic: 84 },
    ])
  })

  it('omits readings that are not final', () => {
    for (const status of ['entered-in-error', 'cancelled', 'registered', 'unknown'])
      assert.deepEqual(findReadings([observation(142, 84, { status })]), [], status)
  })

  it('omits incomplete readings, undated readings, and readings in another unit', () => {
    const whole = observation(142, 84)
    const inKilopascal = (whole.component ?? []).map(part => ({
      ...part,
      valueQuantity: { value: 18, unit: 'kPa' },
    }))
    const { effectiveDateTime: _, ...undated } = whole
    assert.deepEqual(findReadings([{ ...whole, component: (whole.component ?? []).slice(0, 1) }]), [])
    assert.deepEqual(findReadings([{ ...whole, component: inKilopascal }]), [])
    assert.deepEqual(findReadings([undated]), [])
  })
})

describe('formatPressure', () => {
  it('keeps the recorded digits, but rounds a calculated value', () => {
    for (const [pressure, text] of [
      [142, '142'],
      [104.34503964708077, '104.3'],
      [71.96, '71.96'],
      [71.9601, '72'],
      [1e2, '100'],
    ] as const)
      assert.equal(formatPressure(pressure), text)
    assert.match(
      renderPressureChart([reading('2026-01-01', 104.34503, 71.43144), reading('2026-02-01', 99.9601, 60)])
        .markup,
      /First 104\.3 over 71\.4, last 100 over 60/,
    )
  })
})

describe('recentReadings', () => {
  const now = Date.parse('2026-11-13T12:00:00Z')
  const reading = (date: string): Reading => ({ at: Date.parse(date), date, systolic: 120, diastolic: 80 })

  it('shows the last 12 months', () => {
    const all = ['2026-10-01', '2026-05-01', '2025-01-01'].map(reading)
    assert.deepEqual(selectRecentReadings(all, now), { readings: all.slice(0, 2), note: 'Last 12 months' })
  })

  it('shows the latest readings if those months have fewer than two', () => {
    const all = ['2026-10-01', '2024-05-01', '2023-01-01'].map(reading)
    assert.deepEqual(selectRecentReadings(all, now), { readings: all, note: 'Last 3 readings' })
    assert.equal(selectRecentReadings(all.slice(0, 1), now).note, 'One reading')
  })
})

function reading(date: string, systolic: number, diastolic: number): Reading {
  return { at: Date.parse(date), date, systolic, diastolic }
}

function places(markup: string): readonly number[] {
  const points = [...markup.matchAll(/points="([^"]*)"/g)].flatMap(([, text = '']) => text.split(/[ ,]/))
  const others = [...markup.matchAll(/ (?:x|y|cx|cy)="([^"]*)"/g)].map(([, text = '']) => text)
  return [...points, ...others].map(Number)
}

describe('pressureChart', () => {
  const usual = [
    reading('2025-12-02', 162, 94),
    reading('2026-04-29', 154, 88),
    reading('2026-10-02', 171, 98),
    reading('2026-11-13', 142, 84),
  ]

  it('describes the drawing in text', () => {
    const { markup } = renderPressureChart(usual)
    assert.match(markup, /<title id="bp-title">Blood pressure, 02-Dec-2025 to 13-Nov-2026<\/title>/)
    assert.match(
      markup,
      /4 readings .* First 162 over 94, last 142 over 84, highest 171 over 98 on 02-Oct-2026\./,
    )
  })

  it('has a dot for each value and no style attribute', () => {
    const { markup } = renderPressureChart(usual)
    assert.equal(markup.match(/<circle class="d1"/g)?.length, 4)
    assert.equal(markup.match(/<circle class="d2"/g)?.length, 4)
    assert.doesNotMatch(markup, / style=/)
  })

  it('puts a higher value higher, and a later one further right', () => {
    const { markup } = renderPressureChart(usual)
    const [line = ''] = /(?<=class="s1" points=")[^"]*/.exec(markup) ?? []
    const points = line.split(' ').map(point => point.split(',').map(Number))
    const xs = points.map(([x]) => x)
    assert.deepEqual(
      xs,
      xs.toSorted((a = 0, b = 0) => a - b),
    )
    assert.ok((points[2]?.[1] ?? 0) < (points[3]?.[1] ?? 0))
  })

  it('names the diastolic line above it where there is no room below', () => {
    const heightOf = (markup: string) => Number(/class="name2" x="[\d.]+" y="([\d.]+)"/.exec(markup)?.[1])
    const lineOf = (markup: string) => Number(/class="d2" cx="[\d.]+" cy="([\d.]+)"/.exec(markup)?.[1])
    for (const [diastolic, isAbove] of [
      [62, true],
      [94, false],
    ] as const) {
      const { markup } = renderPressureChart([
        reading('2026-05-01', 120, diastolic),
        reading('2026-11-01', 120, diastolic),
      ])
      const distance = lineOf(markup) - heightOf(markup)
      assert.ok(isAbove ? distance >= 8 : distance <= -8, `${diastolic}: ${distance}`)
    }
  })

  for (const [what, readings] of [
    ['very low values', [reading('2026-01-01', 60, 30), reading('2026-02-01', 55, 25)]],
    ['very high values', [reading('2026-01-01', 260, 150), reading('2026-02-01', 300, 160)]],
    ['two readings at the same moment', [reading('2026-01-01', 120, 80), reading('2026-01-01', 122, 82)]],
    ['thirty years', [reading('1996-01-01', 120, 80), reading('2026-01-01', 140, 90)]],
    ['one day', [reading('2026-01-01T08:00:00Z', 120, 80), reading('2026-01-01T20:00:00Z', 140, 90)]],
  ] as const)
    it(`stays inside its frame with ${what}`, () => {
      const { markup } = renderPressureChart(readings)
      for (const place of places(markup)) assert.ok(place >= 0 && place <= 344, String(place))
      const heights = [...markup.matchAll(/ c?y="([^"]*)"/g)].map(([, text]) => Number(text))
      for (const height of heights) assert.ok(height >= 0 && height <= 174, String(height))
    })
})
