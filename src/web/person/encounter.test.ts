import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { describeEncounter, formatEncounterTime } from './encounter.ts'

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
})
