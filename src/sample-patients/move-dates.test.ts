import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { DAY_MS, HOUR_MS } from '../core/index.ts'
import { type Sample, sampleOf } from './testing/sample.ts'

const recorded = Date.parse('2026-11-18T00:00:00Z')
/** Each day and hour of two weeks, and days of other years, before and after the recording. */
const moments = [
  ...Array.from({ length: 14 }, (_, at) => recorded + at * (DAY_MS + HOUR_MS) + 17 * 60_000),
  ...['2024-02-29T23:59:59Z', '2027-01-01T00:00:00Z', '2028-02-29T12:00:00Z', '2041-06-30T08:30:00Z'].map(
    Date.parse,
  ),
]
const samples = moments.map(now => ({ now, sample: sampleOf({ now }), name: new Date(now).toISOString() }))
const original = sampleOf({ now: recorded })

describe('the dates of sample patients', () => {
  it('keep everybody as old as on the day of the recording', () => {
    const ages = (sample: Sample, now: number) =>
      sample.all('Patient').map(it => it.birthDate && countYears(it.birthDate, now))
    for (const { now, sample, name } of samples)
      assert.deepEqual(ages(sample, now), ages(original, recorded), name)
    assert.equal(ages(original, recorded)[0], 68)
  })

  it('keep the birthdays of adults, and as much of them as is known', () => {
    const birthdays = (sample: Sample) =>
      sample.all('Patient').map(it => {
        const isAdult = it.maritalStatus !== undefined
        return isAdult && it.birthDate?.slice(4)
      })
    for (const { sample, name } of samples) assert.deepEqual(birthdays(sample), birthdays(original), name)
    assert.equal(birthdays(original)[0], '-03-14')
  })

  it('keep newborns as many days old', () => {
    for (const { now, sample } of samples) {
      const newborns = sample.all('Patient').filter(it => it._birthDate !== undefined)
      const days = newborns.map(
        it => (Math.floor(now / DAY_MS) * DAY_MS - Date.parse(it.birthDate ?? '')) / DAY_MS,
      )
      assert.deepEqual(days, [6, 1, 1])
      for (const { birthDate, _birthDate } of newborns)
        assert.equal(_birthDate?.extension?.[0]?.valueDateTime, `${birthDate}T04:12:00Z`)
    }
  })

  it('have at most one encounter in progress a patient, which began within a week and not after now', () => {
    for (const { now, sample, name } of samples) {
      const open = sample.all('Encounter').filter(it => it.status === 'in-progress')
      const patients = open.map(it => it.subject?.reference)
      assert.equal(new Set(patients).size, patients.length)
      for (const { period, class: kind, id } of open) {
        const age = now - Date.parse(period?.start ?? '')
        const most = kind.code === 'IMP' ? 8 * DAY_MS : 3 * HOUR_MS
        assert.ok(age >= 0 && age < most, `${name} ${id}`)
      }
    }
  })

  it('have plans in the future, and nothing else', () => {
    for (const { now, sample, name } of samples) {
      for (const it of sample.all('Encounter')) {
        const isPlan = it.status === 'planned' || it.status === 'cancelled'
        assert.equal(Date.parse(it.period?.start ?? '') > now, isPlan, `${name} ${it.id}`)
      }
      for (const patient of sample.all('Patient')) {
        const born = Date.parse(patient.birthDate ?? '1900')
        const last = Math.min(now, Date.parse(patient.deceasedDateTime ?? '2100-01-01') + DAY_MS)
        for (const moment of listPast(sample, patient.id))
          assert.ok(
            Date.parse(moment) >= born && Date.parse(moment) <= last,
            `${name} ${patient.id} ${moment}`,
          )
      }
    }
  })

  it('are days on which clinics are open', () => {
    for (const { sample, name } of samples) {
      for (const { class: kind, status, period, id } of sample.all('Encounter')) {
        if (status === 'in-progress' || kind.code === 'IMP' || kind.code === 'EMER') continue
        const weekday = new Date(period?.start ?? '').getUTCDay()
        assert.ok(weekday > 0 && weekday < 6, `${name} ${id}`)
      }
    }
  })

  it('keep their order', () => {
    const starts = (sample: Sample, id: string) =>
      sample.of(id, 'Encounter').map(it => Date.parse(it.period?.start ?? ''))
    const rank = (numbers: readonly number[]) => numbers.map(it => numbers.filter(other => other < it).length)
    for (const { sample, name } of samples) {
      for (const { id } of sample.all('Patient'))
        assert.deepEqual(rank(starts(sample, id)), rank(starts(original, id)), `${name} ${id}`)
      for (const { period, id } of sample.all('Encounter'))
        assert.ok(period?.end === undefined || (period.start ?? '') < period.end, `${name} ${id}`)
      for (const { onsetDateTime = '', abatementDateTime = '9', recordedDate = '9', id } of sample.all(
        'Condition',
      ))
        assert.ok(onsetDateTime <= abatementDateTime && onsetDateTime <= recordedDate, `${name} ${id}`)
    }
  })
})

/** Whole years, as birthdays count. */
function countYears(born: string, now: number): number {
  const today = new Date(now).toISOString().slice(0, 10)
  const years = Number(today.slice(0, 4)) - Number(born.slice(0, 4))
  return born.slice(4) <= today.slice(4) ? years : years - 1
}

function* listPast(sample: Sample, id: string): Generator<string> {
  for (const it of sample.of(id, 'Encounter')) {
    if (it.status === 'planned' || it.status === 'cancelled') continue
    yield it.period?.start ?? ''
    if (it.period?.end !== undefined) yield it.period.end
  }
  for (const it of sample.of(id, 'Observation'))
    yield* [it.effectiveDateTime ?? it.effectivePeriod?.end ?? '', it.issued ?? '']
  for (const it of sample.of(id, 'DiagnosticReport')) yield* [it.effectiveDateTime ?? '', it.issued ?? '']
  for (const it of sample.of(id, 'Condition'))
    yield* [it.onsetDateTime ?? '', it.recordedDate ?? it.onsetDateTime ?? '']
  for (const it of sample.of(id, 'MedicationRequest')) yield it.authoredOn ?? ''
  for (const it of sample.of(id, 'Immunization')) yield it.occurrenceDateTime ?? ''
  for (const it of sample.of(id, 'AllergyIntolerance'))
    if (it.recordedDate !== undefined) yield it.recordedDate
  for (const it of sample.of(id, 'DocumentReference')) yield it.date ?? ''
}
