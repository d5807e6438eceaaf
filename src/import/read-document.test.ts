import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findBundleFault, listReferenceTexts, readEntry, replaceReferences } from './read-document.ts'

const uuid = '6d705d81-8546-43b2-b336-31a282128f2d'
const patient = { resourceType: 'Patient' }
const readId = (entry: unknown) => {
  const read = readEntry(entry)
  return read.kind === 'resource' ? read.resource.id : read.kind
}

describe('readEntry', () => {
  for (const [name, entry, id] of [
    ['its own', { resource: { ...patient, id: 'own' }, fullUrl: `urn:uuid:${uuid}` }, 'own'],
    ['that of a PUT', { resource: patient, request: { method: 'PUT', url: 'Patient/put' } }, 'put'],
    ['that of a urn:uuid', { resource: patient, fullUrl: `urn:uuid:${uuid}` }, uuid],
    ['that of a URL', { resource: patient, fullUrl: 'https://a.example/fhir/Patient/far' }, 'far'],
  ] as const) {
    it(`gives the resource ${name} id`, () => assert.equal(readId(entry), id))
  }

  it('derives the same id from the same content if it is missing', () => {
    assert.equal(readId({ resource: patient }), readId({ resource: { ...patient } }))
    assert.notEqual(readId({ resource: patient }), readId({ resource: { ...patient, active: true } }))
    assert.match(String(readId({ resource: patient })), /^[0-9a-f]{32}$/)
  })

  it('ignores the outcome of a search', () => {
    assert.equal(
      readId({ resource: { resourceType: 'OperationOutcome' }, search: { mode: 'outcome' } }),
      'nothing',
    )
  })

  it('refuses an entry without a resource to import', () => {
    assert.equal(readId({ request: { method: 'DELETE', url: 'Patient/1' } }), 'fault')
    assert.equal(readId({ resource: patient, request: { method: 'PATCH', url: 'Patient/1' } }), 'fault')
    assert.equal(readId({ fullUrl: 'urn:uuid:1' }), 'fault')
    assert.equal(readId('text'), 'fault')
  })
})

describe('findBundleFault', () => {
  it('refuses histories and responses, and no other type', () => {
    const types = ['collection', 'transaction', 'batch', 'searchset', 'document', 'message', undefined]
    assert.deepEqual(
      types.map(findBundleFault),
      types.map(() => undefined),
    )
    for (const type of ['history', 'batch-response', 'transaction-response'])
      assert.match(String(findBundleFault(type)), /not imported/)
  })
})

const resource = {
  resourceType: 'Observation',
  subject: { reference: 'urn:uuid:1', display: 'urn:uuid:1' },
  performer: [{ reference: 'Practitioner?identifier=a|b' }, { reference: 'Practitioner/2' }],
  extension: [{ url: 'urn:uuid:1', valueReference: { reference: 'urn:uuid:1' } }],
}

describe('findReferences', () => {
  it('finds references at every depth, and nothing else', () => {
    assert.deepEqual(
      [...listReferenceTexts({ ...resource, extension: [] })],
      ['urn:uuid:1', 'Practitioner?identifier=a|b', 'Practitioner/2'],
    )
  })
})

describe('replaceReferences', () => {
  it('replaces whole references and no other text', () => {
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

  it('does not change arrays, nulls, numbers and empty texts', () => {
    const odd = { a: [null, 1, '', [true]], reference: 5, b: { reference: '' } }
    assert.deepEqual(replaceReferences(odd, new Map([['x', 'y']])), odd)
  })
})
