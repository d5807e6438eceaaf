import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isConditional, referencesIn, replaceReferences } from './references.ts'

const resource = {
  resourceType: 'Observation',
  subject: { reference: 'urn:uuid:1', display: 'urn:uuid:1' },
  performer: [{ reference: 'Practitioner?identifier=a|b' }, { reference: 'Practitioner/2' }],
  extension: [{ url: 'urn:uuid:1', valueReference: { reference: 'urn:uuid:1' } }],
}

describe('referencesIn', () => {
  it('finds references at every depth, and nothing else', () => {
    assert.deepEqual(
      [...referencesIn({ ...resource, extension: [] })],
      ['urn:uuid:1', 'Practitioner?identifier=a|b', 'Practitioner/2'],
    )
  })
})

describe('isConditional', () => {
  it('tells a search from an address', () => {
    assert.deepEqual(
      ['Practitioner?identifier=1', 'Practitioner/1', 'urn:uuid:1', 'http://a/b?c=d', 'Practitioner?'].map(
        isConditional,
      ),
      [true, false, false, false, false],
    )
  })
})

describe('replaceReferences', () => {
  it('replaces whole references and leaves other text alone', () => {
    const by = new Map([
      ['urn:uuid:1', 'Patient/1'],
      ['Practitioner?identifier=a|b', 'Practitioner/9'],
    ])
    const replaced = replaceReferences(resource, by) as typeof resource
    assert.deepEqual(replaced.subject, { reference: 'Patient/1', display: 'urn:uuid:1' })
    assert.deepEqual(replaced.performer, [{ reference: 'Practitioner/9' }, { reference: 'Practitioner/2' }])
    assert.equal(replaced.extension[0]?.valueReference.reference, 'Patient/1')
    assert.equal(resource.subject.reference, 'urn:uuid:1', 'the original stays')
  })

  it('keeps arrays, nulls, numbers and empty texts as they are', () => {
    const odd = { a: [null, 1, '', [true]], reference: 5, b: { reference: '' } }
    assert.deepEqual(replaceReferences(odd, new Map([['x', 'y']])), odd)
  })
})
