import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { measureGrowth } from '../../../test/support/growth.ts'
import { describeEncounter, formatEncounterTime } from './clinical.ts'
import { formatDose, formatMedicine } from './index.ts'

const describeFields = (fields: object) => describeEncounter({ resourceType: 'Encounter', ...fields })

describe('describeEncounter', () => {
  it('uses type, service or class as the title, in this order', () => {
    const [type, serviceType] = [[{ text: 'Cardiology clinic' }], { coding: [{ display: 'Cardiology' }] }]
    const AMB = { code: 'AMB', display: 'ambulatory' }
    for (const [fields, title] of [
      [{ type, serviceType, class: AMB }, 'Cardiology clinic'],
      [{ type: [{ coding: [{ display: 'Check up' }] }], class: AMB }, 'Check up'],
      [{ serviceType, class: AMB }, 'Cardiology'],
      [{ class: AMB }, 'Ambulatory'],
      [{ class: { code: 'X', display: 'Own text' } }, 'Own text'],
      [{ class: { code: 'toString' } }, 'Encounter'],
      [{}, 'Encounter'],
    ] as const)
      assert.equal(describeFields(fields).title, title)
    assert.equal(describeFields({ type, class: AMB }).kind, 'Ambulatory')
  })

  it('describes the status, including "entered in error"', () => {
    for (const [status, text, inProgress] of [
      ['in-progress', 'In progress', true],
      ['finished', 'Finished', false],
      ['entered-in-error', 'Entered in error', false],
      ['unknown', 'Not known', false],
      ['constructor', 'Not known', false],
      [undefined, 'Not known', false],
    ] as const)
      assert.deepEqual(
        [describeFields({ status }).status, describeFields({ status }).inProgress],
        [text, inProgress],
      )
  })
})

describe('formatEncounterTime', () => {
  const text = (start: string | undefined, end?: string) =>
    formatEncounterTime({ start, end }).markup.replace(/<[^>]*>/g, '')

  it('includes the end if it is on another day', () => {
    assert.equal(text('2026-11-13', '2026-11-13'), '13-Nov-2026')
    assert.equal(text('2026-11-13', '2026-11-15'), '13-Nov-2026 to 15-Nov-2026')
    assert.equal(text('2026-11-13'), '13-Nov-2026')
    assert.equal(text(undefined), 'Not recorded')
  })

  it('is in the zone of the reader, as all moments', () => {
    assert.match(
      formatEncounterTime({ start: '2026-11-18T01:20:00Z', end: undefined }).markup,
      /^<time datetime="2026-11-18T01:20:00\.000Z" data-moment="minutes">/,
    )
  })
})

describe('formatMedicine', () => {
  const cases: readonly (readonly [name: string | undefined, text: string])[] = [
    ['apixaban 5 MG Oral Tablet', 'Apixaban 5 mg Oral Tablet'],
    ['Levothyroxine 75 mcg tablet', 'Levothyroxine 75 microgram tablet'],
    ['Levothyroxine 75mcg tablet', 'Levothyroxine 75 microgram tablet'],
    ['Levothyroxine 75 µg tablet', 'Levothyroxine 75 microgram tablet'],
    ['fentanyl 25 MCG/HR patch', 'Fentanyl 25 microgram/hour patch'],
    ['insulin glargine 100 UNT/ML injection', 'Insulin glargine 100 units/mL injection'],
    ['insulin lispro 10 U', 'Insulin lispro 10 units'],
    ['heparin 5000 IU/mL', 'Heparin 5000 units/mL'],
    ['Warfarin 5.0 mg tablet', 'Warfarin 5 mg tablet'],
    ['Warfarin 2.50 mg tablet', 'Warfarin 2.5 mg tablet'],
    ['Digoxin .125 mg tablet', 'Digoxin 0.125 mg tablet'],
    ['Digoxin 0.0625 mg', 'Digoxin 0.0625 mg'],
    ['Ramipril 10 mg capsule', 'Ramipril 10 mg capsule'],
    ['Amoxicillin 250 MG / Clavulanate 125 MG', 'Amoxicillin 250 mg / Clavulanate 125 mg'],
    ['NDA020503 200 ACTUAT Albuterol 0.09 MG/ACTUAT', 'NDA020503 200 ACTUAT Albuterol 0.09 mg/dose'],
    ['24 HR Metformin hydrochloride 500 MG', '24 hour Metformin hydrochloride 500 mg'],
    ['Vitamin B12 1000 mcg', 'Vitamin B12 1000 microgram'],
    ['  ', 'Not recorded'],
    [undefined, 'Not recorded'],
  ]
  for (const [name, text] of cases) {
    it(`writes ${JSON.stringify(name)} as ${text}`, () => {
      assert.equal(formatMedicine(name), text)
    })
  }
})

describe('formatDose', () => {
  it('keeps words that only look like units', () => {
    assert.equal(formatDose('Use 2 tablets, up to 3 days'), 'Use 2 tablets, up to 3 days')
    assert.equal(formatDose('version 1.10 of 10'), 'version 1.1 of 10')
    assert.equal(formatDose('version 1.2.30, 1.20.3'), 'version 1.2.3, 1.2.3')
  })

  it('takes time that is linear in the length of the text (LIMIT-7)', () => {
    const grown = measureGrowth(zeros => formatDose(`1.${'0'.repeat(zeros)}1 mg`), 3_000)
    assert.ok(grown < 8, `${grown} times as long`)
  })
})
