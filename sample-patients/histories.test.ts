import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Condition, Observation } from 'fhir/r4.js'
import { cautions, medicineClasses } from './catalogue/medicine-classes.ts'
import { type MedicineKey, medicines } from './catalogue/medicines.ts'
import { sampleOf } from './testing/sample.ts'

const now = Date.parse('2026-11-13T13:52:00Z')
const seeds = ['sallyport', 'b', 'c', 'd']
const samples = seeds.map(seed => sampleOf({ now, seed, count: 120 }))
const everyPatient = samples.flatMap(sample =>
  sample.all('Patient').map(patient => ({ sample, patient, id: patient.id })),
)

describe('a history', () => {
  it('has an encounter and a vital sign for everybody', () => {
    for (const { sample, id } of everyPatient) {
      assert.ok(sample.of(id, 'Encounter').length > 0, id)
      assert.ok(
        sample.of(id, 'Observation').some(it => categoryOf(it) === 'vital-signs'),
        id,
      )
    }
  })

  it('has some encounters in progress, of several kinds, most finished, some planned', () => {
    const encounters = samples[0]?.all('Encounter') ?? []
    const open = encounters.filter(it => it.status === 'in-progress')
    assert.ok(open.length >= 8, String(open.length))
    assert.deepEqual([...new Set(encounters.map(it => it.class.code))].sort(), [
      'AMB',
      'EMER',
      'HH',
      'IMP',
      'VR',
    ])
    assert.ok(encounters.filter(it => it.status === 'finished').length / encounters.length > 0.85)
    assert.ok(encounters.some(it => it.status === 'planned'))
    for (const it of open) assert.equal(it.period?.end, undefined)
    for (const it of encounters) assert.ok(it.participant?.[0]?.individual?.display, it.id)
  })

  it('has at most one encounter in progress a patient, begun within a week and not after now', () => {
    for (const { sample, id } of everyPatient) {
      const open = sample.of(id, 'Encounter').filter(it => it.status === 'in-progress')
      assert.ok(open.length <= 1, id)
      for (const { period } of open) {
        const age = now - Date.parse(period?.start ?? '')
        assert.ok(age >= 0 && age < 8 * 86_400_000, id)
      }
    }
  })

  it('lies between birth and death, and only plans lie in the future', () => {
    for (const { sample, patient, id } of everyPatient) {
      const born = Date.parse(patient.birthDate ?? '1900')
      const last = Math.min(now, Date.parse(patient.deceasedDateTime ?? '2100-01-01') + 86_400_000)
      for (const moment of pastMoments(sample, id)) {
        assert.ok(Date.parse(moment) >= born && Date.parse(moment) <= last, `${id} ${moment}`)
      }
    }
  })

  it('ends after it begins', () => {
    for (const sample of samples) {
      for (const { period, id } of sample.all('Encounter')) {
        if (period?.end !== undefined) assert.ok((period.start ?? '') < period.end, id)
      }
      for (const { onsetDateTime, abatementDateTime, recordedDate, id } of sample.all('Condition')) {
        assert.ok((onsetDateTime ?? '') <= (abatementDateTime ?? '9'), id)
        assert.ok((onsetDateTime ?? '') <= (recordedDate ?? '9'), id)
      }
    }
  })

  it('has active and resolved conditions, nearly all with the day they were recorded', () => {
    const conditions = samples[0]?.all('Condition') ?? []
    const share = (test: (it: (typeof conditions)[number]) => boolean) =>
      conditions.filter(test).length / conditions.length
    assert.ok(share(it => statusOf(it) === 'active') > 0.5)
    assert.ok(share(it => statusOf(it) === 'resolved') > 0.15)
    const recorded = share(it => it.recordedDate !== undefined)
    assert.ok(recorded > 0.85 && recorded < 1, String(recorded))
    const categories = new Set(conditions.map(it => it.category?.[0]?.coding?.[0]?.code))
    assert.deepEqual([...categories].sort(), ['encounter-diagnosis', 'health-concern', 'problem-list-item'])
  })

  it('has observations of every category that a granular scope may name', () => {
    const categories = new Set(samples[0]?.all('Observation').map(categoryOf))
    assert.deepEqual([...categories].sort(), ['laboratory', 'social-history', 'survey', 'vital-signs'])
  })

  it('has active, stopped and completed prescriptions; what is active now was ordered within a year', () => {
    const orders = samples[0]?.all('MedicationRequest') ?? []
    assert.deepEqual([...new Set(orders.map(it => it.status))].sort(), ['active', 'completed', 'stopped'])
    for (const it of orders.filter(order => order.status === 'active')) {
      assert.ok(now - Date.parse(it.authoredOn ?? '') < 366 * 86_400_000, it.id)
    }
    assert.ok(orders.some(it => it.dosageInstruction === undefined))
    assert.ok(orders.filter(it => it.dosageInstruction?.[0]?.text).length / orders.length > 0.9)
    for (const it of orders) if (it.status === 'stopped') assert.ok(it.statusReason?.text, it.id)
  })

  it('has nothing active for those who died', () => {
    for (const { sample, patient, id } of everyPatient.filter(
      it => it.patient.deceasedDateTime !== undefined,
    )) {
      assert.deepEqual(
        sample.of(id, 'MedicationRequest').filter(it => it.status === 'active'),
        [],
        id,
      )
      assert.deepEqual(
        sample.of(id, 'Encounter').filter(it => it.status !== 'finished'),
        [],
        id,
      )
      const [last] = sample.of(id, 'Encounter').slice(-1)
      assert.equal(last?.period?.end?.slice(0, 10), patient.deceasedDateTime)
    }
  })

  it('gives no two medicines of one class together, and none that an allergy or condition forbids', () => {
    for (const { sample, id } of everyPatient) {
      const taken = sample
        .of(id, 'MedicationRequest')
        .filter(it => it.status === 'active')
        .map(it => classOf(it.medicationCodeableConcept?.coding?.[0]?.code))
        .filter(it => it !== undefined)
      assert.deepEqual(taken, [...new Set(taken)], id)
      const allergies = sample.of(id, 'AllergyIntolerance').map(it => it.code?.text ?? '')
      for (const kind of taken) {
        for (const allergy of cautions[kind]?.allergies ?? [])
          assert.ok(!allergies.some(it => it.startsWith(allergy)), id)
        for (const other of cautions[kind]?.classes ?? [])
          assert.ok(!taken.includes(other), `${id} ${kind} ${other}`)
      }
    }
  })

  it('gives conditions only to the age and sex that have them', () => {
    for (const { sample, patient, id } of everyPatient) {
      const names = sample.of(id, 'Condition').map(it => it.code?.text)
      if (patient.gender !== 'female')
        assert.ok(!names.includes('Pregnancy') && !names.includes('Osteoporosis'), id)
      if (patient.gender !== 'male') assert.ok(!names.includes('Benign prostatic hyperplasia'), id)
      const diabetes = names.filter(
        it => it === 'Type 1 diabetes mellitus' || it === 'Type 2 diabetes mellitus' || it === 'Prediabetes',
      )
      assert.ok(diabetes.length <= 1, id)
    }
  })

  it('says who has no known allergy, and of some says nothing', () => {
    const counts = everyPatient.map(({ sample, id }) => sample.of(id, 'AllergyIntolerance'))
    assert.ok(counts.some(it => it.length === 0) && counts.some(it => it.length > 1))
    for (const of of counts) {
      const none = of.filter(it => it.code?.coding?.[0]?.code === '716186003').length
      assert.ok(none === 0 || of.length === 1)
    }
  })
})

type Sample = (typeof samples)[number]

function* pastMoments(sample: Sample, id: string): Generator<string> {
  for (const it of sample.of(id, 'Encounter')) {
    if (it.status === 'planned' || it.status === 'cancelled') continue
    yield it.period?.start ?? ''
    if (it.period?.end !== undefined) yield it.period.end
  }
  for (const it of sample.of(id, 'Observation')) yield* [it.effectiveDateTime ?? '', it.issued ?? '']
  for (const it of sample.of(id, 'Condition'))
    yield* [it.onsetDateTime ?? '', it.recordedDate ?? it.onsetDateTime ?? '']
  for (const it of sample.of(id, 'MedicationRequest')) yield it.authoredOn ?? ''
  for (const it of sample.of(id, 'Immunization')) yield it.occurrenceDateTime ?? ''
  for (const it of sample.of(id, 'AllergyIntolerance'))
    if (it.recordedDate !== undefined) yield it.recordedDate
  for (const it of sample.of(id, 'DocumentReference')) yield it.date ?? ''
}

function categoryOf(it: Pick<Observation, 'category'>): string | undefined {
  return it.category?.[0]?.coding?.[0]?.code
}

function statusOf(it: Pick<Condition, 'clinicalStatus'>): string | undefined {
  return it.clinicalStatus?.coding?.[0]?.code
}

function classOf(rxnorm: string | undefined) {
  const key = Object.entries(medicines).find(([, it]) => it.rxnorm === rxnorm)?.[0]
  return key === undefined ? undefined : medicineClasses[key as MedicineKey]
}
