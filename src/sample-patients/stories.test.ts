import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Condition, Observation } from 'fhir/r4.js'
import { sampleOf } from './testing/sample.ts'

const now = Date.parse('2026-11-18T13:52:00Z')
const sample = sampleOf({ now })
const patients = sample.all('Patient')
const findPatient = (family: string) => patients.find(it => it.name?.[0]?.family === family)

describe('the sample patients', () => {
  it('stand on the first screen with everything that it must get right', () => {
    const first = patients
      .toSorted((a, b) => ((a.name?.[0]?.family ?? '') < (b.name?.[0]?.family ?? '') ? -1 : 1))
      .slice(0, 20)
    const families = first.map(it => it.name?.[0]?.family)
    assert.equal(families.filter(it => it === 'Juniper').length, 2, 'similar names')
    assert.ok(first.some(it => it.birthDate?.length === 7) && first.some(it => it.birthDate?.length === 4))
    assert.ok(
      first.some(it => it.identifier === undefined),
      'no MRN',
    )
    assert.ok(
      first.some(it => (it.name?.[0]?.family?.length ?? 0) > 25),
      'a long name',
    )
    assert.deepEqual([...new Set(first.map(it => it.gender))].sort(), ['female', 'male', 'unknown'])
    assert.ok(new Set(families.map(it => it?.[0])).size >= 8, 'many letters')
  })

  it('include a birth date that is not known, a death, other and unknown sex, twins and far-off letters', () => {
    assert.equal(findPatient('Pumice')?.birthDate, undefined)
    assert.equal(findPatient('Limestone')?.deceasedDateTime, '2025-03-08')
    assert.equal(findPatient('Slate')?.gender, 'other')
    assert.equal(findPatient('Elder')?.gender, 'unknown')
    assert.deepEqual(patients.map(it => it.multipleBirthInteger).filter(Boolean), [1, 2])
    assert.deepEqual(findPatient('Obsidian')?.name?.[0]?.given, ['Þóra'])
    assert.deepEqual(findPatient('Birchfield-Montmorency-Ashgrove')?.name?.[0]?.prefix, ['Prof.', 'Dr.'])
  })

  it('are of all ages: days, months, childhood, and past ninety-five', () => {
    const ages = patients
      .filter(it => it.birthDate !== undefined && it.deceasedDateTime === undefined)
      .map(it => (now - Date.parse(it.birthDate ?? '')) / (365.25 * 86_400_000))
    const within = (from: number, to: number) => ages.filter(age => age >= from && age < to).length
    assert.ok(within(0, 0.01) >= 2 && within(0, 2) >= 3 && within(2, 18) >= 6 && within(18, 40) >= 8)
    assert.ok(within(40, 65) >= 10 && within(65, 85) >= 8 && within(95, 120) >= 1)
  })

  it('under 18 are neither Mrs nor married', () => {
    const isChild = (it: (typeof patients)[number]) => (it.birthDate ?? '0') > '2008-11-18'
    assert.ok(patients.filter(isChild).length > 10)
    for (const it of patients.filter(isChild)) {
      assert.equal(it.name?.[0]?.prefix, undefined, it.id)
      assert.equal(it.maritalStatus, undefined, it.id)
    }
  })

  it('have the ids that the documentation and the sample accounts name', () => {
    assert.deepEqual(findPatient('Juniper')?.id, 'patient-1')
    assert.deepEqual(findPatient('Alabaster')?.id, 'patient-27')
    assert.deepEqual(
      sample.of('patient-27', 'RelatedPerson').map(it => it.id),
      ['mother-27'],
    )
  })
})

describe('a history', () => {
  it('has an encounter and a vital sign for everybody', () => {
    for (const { id } of patients) {
      assert.ok(sample.of(id, 'Encounter').length > 0, id)
      assert.ok(
        sample.of(id, 'Observation').some(it => categoryOf(it) === 'vital-signs'),
        id,
      )
    }
  })

  it('has some encounters in progress, of several kinds, most finished, some planned', () => {
    const encounters = sample.all('Encounter')
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

  it('has active and resolved conditions, nearly all with the day they were recorded', () => {
    const conditions = sample.all('Condition')
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
    const categories = new Set(sample.all('Observation').map(categoryOf))
    assert.deepEqual([...categories].sort(), [
      'care-experience-preference',
      'laboratory',
      'procedure',
      'social-history',
      'survey',
      'treatment-intervention-preference',
      'vital-signs',
    ])
  })

  it('has active, stopped and completed prescriptions; what is active now was ordered within a year', () => {
    const orders = sample.all('MedicationRequest')
    assert.deepEqual([...new Set(orders.map(it => it.status))].sort(), ['active', 'completed', 'stopped'])
    for (const it of orders.filter(order => order.status === 'active')) {
      assert.ok(now - Date.parse(it.authoredOn ?? '') < 366 * 86_400_000, it.id)
    }
    assert.ok(orders.some(it => it.dosageInstruction === undefined))
    assert.ok(orders.filter(it => it.dosageInstruction?.[0]?.text).length / orders.length > 0.9)
    for (const it of orders) if (it.status === 'stopped') assert.ok(it.statusReason?.text, it.id)
  })

  it('has nothing active for those who died', () => {
    for (const { id, deceasedDateTime } of patients.filter(it => it.deceasedDateTime !== undefined)) {
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
      assert.equal(last?.period?.end?.slice(0, 10), deceasedDateTime)
    }
  })

  it('gives conditions only to the age and sex that have them', () => {
    for (const { gender, id } of patients) {
      const names = sample.of(id, 'Condition').map(it => it.code?.text)
      if (gender !== 'female') assert.ok(!names.includes('Pregnancy') && !names.includes('Osteoporosis'), id)
      if (gender !== 'male') assert.ok(!names.includes('Benign prostatic hyperplasia'), id)
      const diabetes = names.filter(
        it => it === 'Type 1 diabetes mellitus' || it === 'Type 2 diabetes mellitus' || it === 'Prediabetes',
      )
      assert.ok(diabetes.length <= 1, id)
    }
  })

  it('says who has no known allergy, and of some says nothing', () => {
    const counts = patients.map(({ id }) => sample.of(id, 'AllergyIntolerance'))
    assert.ok(counts.some(it => it.length === 0) && counts.some(it => it.length > 1))
    for (const of of counts) {
      const none = of.filter(it => it.code?.coding?.[0]?.code === '716186003').length
      assert.ok(none === 0 || of.length === 1)
    }
  })
})

const observations = sample.all('Observation')
const isAbsent = (it: Observation) =>
  [it, ...(it.component ?? [])].some(part => part.dataAbsentReason !== undefined)
const listByCode = (code: string) =>
  observations.filter(it => it.code.coding?.[0]?.code === code && !isAbsent(it))
const amountOf = (it: Observation) => it.valueQuantity?.value ?? Number.NaN
const sameMoment = Map.groupBy(observations, nameMoment)

/** A value outside is not that of a sick patient but a mistake. */
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

describe('a measurement', () => {
  for (const [code, [low, high]] of Object.entries(plausible)) {
    it(`of ${code} lies between ${low} and ${high}`, () => {
      const values = listByCode(code).map(amountOf)
      assert.ok(values.length > 2, String(values.length))
      assert.deepEqual(
        values.filter(it => !(it >= low && it <= high)),
        [],
      )
    })
  }

  it('of the blood pressure has a systolic over a diastolic part', () => {
    for (const it of listByCode('85354-9')) {
      const [systolic = 0, diastolic = 0] = it.component?.map(part => part.valueQuantity?.value ?? 0) ?? []
      assert.ok(
        systolic > diastolic + 15 && systolic > 75 && systolic < 215 && diastolic > 40 && diastolic < 125,
        it.id,
      )
    }
  })

  it('of body mass index follows from weight and height of the same moment', () => {
    for (const it of listByCode('39156-5')) {
      const same = (code: string) =>
        (sameMoment.get(nameMoment(it)) ?? []).find(other => other.code.coding?.[0]?.code === code)
          ?.valueQuantity?.value ?? Number.NaN
      assert.equal(amountOf(it), Number((same('29463-7') / (same('8302-2') / 100) ** 2).toFixed(1)), it.id)
    }
  })

  it('of LDL cholesterol follows from the others of their panel (Friedewald)', () => {
    for (const it of listByCode('13457-7')) {
      const same = (code: string) =>
        (sameMoment.get(nameMoment(it)) ?? []).find(other => other.code.coding?.[0]?.code === code)
          ?.valueQuantity?.value ?? 0
      assert.equal(amountOf(it), same('2093-3') - same('2085-9') - Math.round(same('2571-8') / 5), it.id)
    }
  })

  it('says high, low or normal as their range does', () => {
    for (const it of observations.filter(other => other.referenceRange !== undefined)) {
      const { low, high } = it.referenceRange?.[0] ?? {}
      const value = amountOf(it)
      const expected = value > (high?.value ?? Infinity) ? 'H' : value < (low?.value ?? -Infinity) ? 'L' : 'N'
      assert.equal(it.interpretation?.[0]?.coding?.[0]?.code, expected, it.id)
    }
  })

  it('of the test patient draws a curve: nine or more pressures in a year, falling', () => {
    const year = now - 365 * 86_400_000
    const readings = sample
      .of('patient-1', 'Observation')
      .filter(it => it.component !== undefined && Date.parse(it.effectiveDateTime ?? '') > year)
      .map(it => it.component?.[0]?.valueQuantity?.value ?? 0)
    assert.ok(readings.length >= 9, String(readings))
    assert.ok(mean(readings.slice(0, 3)) > mean(readings.slice(-2)), String(readings))
  })
})

const codings = [...listCodings([...sample.everything])]
const codesOf = (system: string) => [
  ...new Set(codings.filter(it => it.system === system).map(it => it.code ?? '')),
]

describe('a code', () => {
  it('of SNOMED CT is that of a concept, with the right check digit', () => {
    const codes = codesOf('http://snomed.info/sct')
    assert.ok(codes.length > 80, String(codes.length))
    assert.deepEqual(
      codes.filter(code => !isVerhoeff(code) || !/^\d{4,16}[01]0\d$/.test(code)),
      [],
    )
  })

  it('of LOINC has the right check digit', () => {
    // Answers (LA) and parts (LP) have other check digits.
    const codes = codesOf('http://loinc.org').filter(code => /^\d/.test(code))
    assert.ok(codes.length > 35, String(codes.length))
    assert.deepEqual(
      codes.filter(code => !isLoinc(code)),
      [],
    )
  })

  it('has one name in all records', () => {
    const named = codings.filter(it => it.display !== undefined)
    const names = Map.groupBy(named, it => `${it.system}|${it.code}`)
    assert.ok(names.size > 150)
    assert.deepEqual(
      [...names].filter(([, of]) => new Set(of.map(it => it.display)).size > 1),
      [],
    )
  })
})

function categoryOf(it: Pick<Observation, 'category'>): string | undefined {
  return it.category?.[0]?.coding?.[0]?.code
}

function statusOf(it: Pick<Condition, 'clinicalStatus'>): string | undefined {
  return it.clinicalStatus?.coding?.[0]?.code
}

function nameMoment(it: Observation): string {
  return `${it.subject?.reference} ${it.effectiveDateTime} ${it.encounter?.reference}`
}

function mean(of: readonly number[]): number {
  return of.reduce((sum, it) => sum + it, 0) / of.length
}

interface Coding {
  readonly system?: string
  readonly code?: string
  readonly display?: string
}

function* listCodings(value: unknown): Generator<Coding> {
  if (typeof value !== 'object' || value === null) return
  for (const [key, below] of Object.entries(value)) {
    if (key === 'coding' && Array.isArray(below)) yield* below as Coding[]
    else yield* listCodings(below)
  }
}

// Verhoeff's check: multiplication in the dihedral group of ten, and a permutation by place.
const multiply = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
  [1, 2, 3, 4, 0, 6, 7, 8, 9, 5],
  [2, 3, 4, 0, 1, 7, 8, 9, 5, 6],
  [3, 4, 0, 1, 2, 8, 9, 5, 6, 7],
  [4, 0, 1, 2, 3, 9, 5, 6, 7, 8],
  [5, 9, 8, 7, 6, 0, 4, 3, 2, 1],
  [6, 5, 9, 8, 7, 1, 0, 4, 3, 2],
  [7, 6, 5, 9, 8, 2, 1, 0, 4, 3],
  [8, 7, 6, 5, 9, 3, 2, 1, 0, 4],
  [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
]
const permute = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
  [1, 5, 7, 6, 2, 8, 3, 0, 9, 4],
  [5, 8, 0, 3, 7, 9, 6, 1, 4, 2],
  [8, 9, 1, 6, 0, 4, 3, 5, 2, 7],
  [9, 4, 5, 3, 1, 2, 6, 8, 7, 0],
  [4, 2, 8, 6, 5, 7, 3, 9, 0, 1],
  [2, 7, 9, 3, 8, 0, 6, 4, 1, 5],
  [7, 0, 4, 6, 9, 1, 3, 2, 5, 8],
]

function isVerhoeff(code: string): boolean {
  const digits = [...code].reverse().map(Number)
  return digits.reduce((check, digit, at) => multiply[check]?.[permute[at % 8]?.[digit] ?? 0] ?? 0, 0) === 0
}

/** Modulo 10, doubling every other digit from the right (LOINC Users' Guide, appendix C). */
function isLoinc(code: string): boolean {
  const [number = '', check] = code.split('-')
  const sum = [...number]
    .reverse()
    .map((digit, at) => (at % 2 === 0 ? Number(digit) * 2 : Number(digit)))
    .reduce((total, value) => total + (value > 9 ? value - 9 : value), 0)
  return (10 - (sum % 10)) % 10 === Number(check)
}
