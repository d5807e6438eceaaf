import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { describeEncounter, formatEncounterTime } from './encounter.ts'

const words = (fields: object) => describeEncounter({ resourceType: 'Encounter', ...fields })

describe('describeEncounter', () => {
  it('calls an encounter by its type, its service, its class, in this order', () => {
    const [type, serviceType] = [[{ text: 'Cardiology clinic' }], { coding: [{ display: 'Cardiology' }] }]
    const AMB = { code: 'AMB', display: 'ambulatory' }
    for (const [fields, title] of [
      [{ type, serviceType, class: AMB }, 'Cardiology clinic'],
      [{ type: [{ coding: [{ display: 'Check up' }] }], class: AMB }, 'Check up'],
      [{ serviceType, class: AMB }, 'Cardiology'],
      [{ class: AMB }, 'Ambulatory'],
      [{ class: { code: 'X', display: 'Own words' } }, 'Own words'],
      [{ class: { code: 'toString' } }, 'Encounter'],
      [{}, 'Encounter'],
    ] as const)
      assert.equal(words(fields).title, title)
    assert.equal(words({ type, class: AMB }).kind, 'Ambulatory')
  })

  it('says how it stands, also that it should not be there', () => {
    for (const [status, said, inProgress] of [
      ['in-progress', 'In progress', true],
      ['finished', 'Finished', false],
      ['entered-in-error', 'Entered in error', false],
      ['unknown', 'Not known', false],
      ['constructor', 'Not known', false],
      [undefined, 'Not known', false],
    ] as const)
      assert.deepEqual([words({ status }).status, words({ status }).inProgress], [said, inProgress])
  })
})

describe('formatEncounterTime', () => {
  const said = (start: string | undefined, end?: string) =>
    formatEncounterTime({ start, end }).markup.replace(/<[^>]*>/g, '')

  it('names the end where that is another day', () => {
    assert.equal(said('2026-11-13', '2026-11-13'), '13-Nov-2026')
    assert.equal(said('2026-11-13', '2026-11-15'), '13-Nov-2026 to 15-Nov-2026')
    assert.equal(said('2026-11-13'), '13-Nov-2026')
    assert.equal(said(undefined), 'Not recorded')
  })
})
