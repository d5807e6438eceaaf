import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Observation as Written } from 'fhir/r4.js'
import { sampleOf } from './testing/sample.ts'

type Observation = Written & { id: string }

const now = Date.parse('2026-11-13T13:52:00Z')
const samples = ['sallyport', 'b', 'c'].map(seed => sampleOf({ now, seed, count: 120 }))
const observations = samples.flatMap(sample => sample.all('Observation'))
const byCode = (code: string) => observations.filter(it => it.code.coding?.[0]?.code === code)
const amountOf = (it: Observation) => it.valueQuantity?.value ?? Number.NaN

/** What lies outside is not a sick patient but a broken generator. */
const plausible: Readonly<Record<string, readonly [number, number]>> = {
  '8867-4': [48, 175],
  '9279-1': [11, 56],
  '8310-5': [35.9, 39.8],
  '59408-5': [86, 100],
  '29463-7': [2, 140],
  '8302-2': [42, 205],
  '39156-5': [12.5, 42],
  '9843-4': [31, 52],
  '4548-4': [4.6, 10.5],
  '2345-7': [65, 260],
  '2160-0': [0.2, 2.6],
  '98979-8': [22, 130],
  '2951-2': [133, 147],
  '2823-3': [3.3, 5.6],
  '13457-7': [50, 230],
  '718-7': [8, 17.5],
  '3016-3': [0.3, 14],
}

describe('measurements', () => {
  for (const [code, [low, high]] of Object.entries(plausible)) {
    it(`of ${code} lie between ${low} and ${high}`, () => {
      const values = byCode(code).map(amountOf)
      assert.ok(values.length > 5, String(values.length))
      assert.deepEqual(
        values.filter(it => !(it >= low && it <= high)),
        [],
      )
    })
  }

  it('of the blood pressure have a systolic over a diastolic part, and none under three years of age', () => {
    for (const it of byCode('85354-9')) {
      const [systolic = 0, diastolic = 0] = it.component?.map(part => part.valueQuantity?.value ?? 0) ?? []
      assert.ok(
        systolic > diastolic + 15 && systolic > 75 && systolic < 215 && diastolic > 40 && diastolic < 125,
        it.id,
      )
    }
  })

  it('of body mass index follow from weight and height of the same moment', () => {
    for (const it of byCode('39156-5')) {
      const same = (code: string) =>
        byMoment(it).find(other => other.code.coding?.[0]?.code === code)?.valueQuantity?.value ?? Number.NaN
      assert.equal(amountOf(it), Number((same('29463-7') / (same('8302-2') / 100) ** 2).toFixed(1)), it.id)
    }
  })

  it('of LDL cholesterol follow from the others of their panel (Friedewald)', () => {
    for (const it of byCode('13457-7')) {
      const same = (code: string) =>
        byMoment(it).find(other => other.code.coding?.[0]?.code === code)?.valueQuantity?.value ?? 0
      assert.equal(amountOf(it), same('2093-3') - same('2085-9') - Math.round(same('2571-8') / 5), it.id)
    }
  })

  it('say high, low or normal as their range does', () => {
    for (const it of observations.filter(other => other.referenceRange !== undefined)) {
      const { low, high } = it.referenceRange?.[0] ?? {}
      const value = amountOf(it)
      const expected = value > (high?.value ?? Infinity) ? 'H' : value < (low?.value ?? -Infinity) ? 'L' : 'N'
      assert.equal(it.interpretation?.[0]?.coding?.[0]?.code, expected, it.id)
    }
  })

  it('fit the conditions: HbA1c in diabetes, filtration in kidney disease, pressure in hypertension', () => {
    const having = (name: string, code: string, part?: number) =>
      mean(patientsWith(name).flatMap(({ sample, id }) => values(sample.of(id, 'Observation'), code, part)))
    const all = (code: string, part?: number) => mean(values(observations, code, part))
    assert.ok(having('Type 2 diabetes mellitus', '4548-4') > 6.5)
    assert.ok(having('Chronic kidney disease stage 3', '98979-8') < 65)
    assert.ok(having('Essential hypertension', '85354-9', 0) > all('85354-9', 0) + 5)
    assert.ok(having('Obesity', '39156-5') > 29)
  })

  it('of the test patient draw a curve: nine or more pressures in a year, falling', () => {
    const year = now - 365 * 86_400_000
    const readings = (samples[0]?.of('patient-1', 'Observation') ?? [])
      .filter(it => it.component !== undefined && Date.parse(it.effectiveDateTime ?? '') > year)
      .map(it => it.component?.[0]?.valueQuantity?.value ?? 0)
    assert.ok(readings.length >= 9, String(readings))
    assert.ok(mean(readings.slice(0, 3)) > mean(readings.slice(-2)), String(readings))
  })
})

function byMoment(of: Observation): Observation[] {
  return (
    momentIndex.get(`${of.subject?.reference} ${of.effectiveDateTime} ${of.encounter?.reference}`) ?? []
  ).filter(
    it =>
      it.subject?.reference === of.subject?.reference &&
      sampleOfObservation.get(it) === sampleOfObservation.get(of),
  )
}

const sampleOfObservation = new Map(
  samples.flatMap(sample => sample.all('Observation').map(it => [it, sample] as const)),
)
const momentIndex = Map.groupBy(
  observations,
  it => `${it.subject?.reference} ${it.effectiveDateTime} ${it.encounter?.reference}`,
)

function patientsWith(name: string) {
  return samples.flatMap(sample =>
    sample
      .all('Condition')
      .filter(it => it.code?.text === name)
      .map(it => ({ sample, id: it.subject.reference?.slice('Patient/'.length) ?? '' })),
  )
}

function values(of: readonly Observation[], code: string, part?: number): number[] {
  return of
    .filter(it => it.code.coding?.[0]?.code === code)
    .map(
      it =>
        (part === undefined ? it.valueQuantity?.value : it.component?.[part]?.valueQuantity?.value) ??
        Number.NaN,
    )
}

function mean(of: readonly number[]): number {
  return of.reduce((sum, it) => sum + it, 0) / of.length
}
