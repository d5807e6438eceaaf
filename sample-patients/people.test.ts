import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { todayOf } from './calendar.ts'
import { ageOn, people } from './people.ts'
import { sampleOf } from './testing/sample.ts'

const now = Date.parse('2026-11-13T13:52:00Z')
const today = todayOf(now)
const sixty = [...people(60, 'sallyport', today)]
const patients = sampleOf({ now }).all('Patient')
const patient = (family: string) => patients.find(it => it.name?.[0]?.family === family)

describe('people', () => {
  it('are of all ages: days, months, childhood, and past ninety-five', () => {
    const ages = sixty.filter(it => it.died === undefined).map(it => ageOn(it, today.day))
    const within = (from: number, to: number) => ages.filter(age => age >= from && age <= to).length
    assert.ok(sixty.some(it => today.day - it.born <= 1))
    assert.ok(within(0, 1) >= 3 && within(2, 17) >= 6 && within(18, 39) >= 8, String(ages))
    assert.ok(within(40, 64) >= 10 && within(65, 84) >= 8 && within(85, 120) >= 2, String(ages))
    assert.ok(Math.max(...ages) >= 95)
  })

  it('are as old on any day as the cast says', () => {
    const then = todayOf(Date.parse('2031-02-01T00:00:00Z'))
    const [alba] = [...people(1, 'sallyport', then)]
    assert.equal(alba && ageOn(alba, then.day), 68)
  })

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
    assert.equal(patient('Pumice')?.birthDate, undefined)
    assert.equal(patient('Limestone')?.deceasedDateTime, '2025-03-03')
    assert.equal(patient('Slate')?.gender, 'other')
    assert.equal(patient('Elder')?.gender, 'unknown')
    assert.deepEqual(patients.map(it => it.multipleBirthInteger).filter(Boolean), [1, 2])
    assert.deepEqual(patient('Obsidian')?.name?.[0]?.given, ['Þóra'])
    assert.deepEqual(patient('Birchfield-Montmorency-Ashgrove')?.name?.[0]?.prefix, ['Prof.', 'Dr.'])
  })

  it('have a time of birth only while their age is told in days', () => {
    for (const it of patients) {
      const days = it.birthDate === undefined ? 999 : (now - Date.parse(it.birthDate)) / 86_400_000
      assert.equal(it._birthDate !== undefined, days < 29 && it.birthDate?.length === 10, it.id)
    }
  })
})
