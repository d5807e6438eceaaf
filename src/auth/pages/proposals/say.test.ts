import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type ExactResource, parseExact } from '../../../fhir/index.ts'
import { listDifferences } from './say.ts'

function say(coding: object, text?: string): string | undefined {
  const resource = { resourceType: 'Condition', code: { ...(text && { text }), coding: [coding] } }
  return listDifferences(undefined, parseExact(JSON.stringify(resource)) as ExactResource)[0]?.after[0]
}

describe('the codes of a proposal', () => {
  it('have the name of their system beside their text, so that a changed code is seen', () => {
    const clinical = 'http://terminology.hl7.org/CodeSystem/condition-clinical'
    assert.equal(say({ system: 'http://snomed.info/sct', code: '1' }, 'Asthma'), 'Asthma [SNOMED CT 1]')
    assert.equal(
      say({ system: clinical, code: 'active', display: 'Active' }),
      '[Active HL7 condition-clinical active]',
    )
  })

  it('have the URL of a system without a name: no other system can look like one of these', () => {
    const systems = [
      'http://loinc.org',
      'http://loinc.org/',
      'https://loinc.org',
      'LOINC',
      'http://terminology.hl7.org/CodeSystem/LOINC',
      'http://terminology.hl7.org/CodeSystem/LOINC/x',
      'toString',
    ]
    const said = systems.map(system => say({ system, code: '1' }))
    assert.equal(new Set(said).size, systems.length)
    assert.deepEqual(said.slice(0, 2), ['[LOINC 1]', '[http://loinc.org/|1]'])
    assert.equal(said.at(-1), '[toString|1]')
  })
})
