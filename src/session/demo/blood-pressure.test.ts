import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Observation } from '../records/resources.ts'
import { findReadings, type Reading, selectRecentReadings } from './blood-pressure.ts'

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
