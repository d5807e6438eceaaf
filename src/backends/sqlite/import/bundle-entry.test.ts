import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { bundleEntry, bundleFault } from './bundle-entry.ts'

const uuid = '6d705d81-8546-43b2-b336-31a282128f2d'
const patient = { resourceType: 'Patient' }
const idOf = (entry: unknown) => {
  const read = bundleEntry(entry)
  return read.kind === 'resource' ? read.resource.id : read.kind
}

describe('bundleEntry', () => {
  for (const [name, entry, id] of [
    ['its own', { resource: { ...patient, id: 'own' }, fullUrl: `urn:uuid:${uuid}` }, 'own'],
    ['that of a PUT', { resource: patient, request: { method: 'PUT', url: 'Patient/put' } }, 'put'],
    ['that of a urn:uuid', { resource: patient, fullUrl: `urn:uuid:${uuid}` }, uuid],
    ['that of an address', { resource: patient, fullUrl: 'https://a.example/fhir/Patient/far' }, 'far'],
  ] as const) {
    it(`gives the resource ${name} id`, () => assert.equal(idOf(entry), id))
  }

  it('makes an id from the content where there is none, always the same', () => {
    assert.equal(idOf({ resource: patient }), idOf({ resource: { ...patient } }))
    assert.notEqual(idOf({ resource: patient }), idOf({ resource: { ...patient, active: true } }))
    assert.match(String(idOf({ resource: patient })), /^[0-9a-f]{32}$/)
  })

  it('takes the outcome of a search for nothing', () => {
    assert.equal(
      idOf({ resource: { resourceType: 'OperationOutcome' }, search: { mode: 'outcome' } }),
      'nothing',
    )
  })

  it('refuses what does not bring a resource', () => {
    assert.equal(idOf({ request: { method: 'DELETE', url: 'Patient/1' } }), 'fault')
    assert.equal(idOf({ resource: patient, request: { method: 'PATCH', url: 'Patient/1' } }), 'fault')
    assert.equal(idOf({ fullUrl: 'urn:uuid:1' }), 'fault')
    assert.equal(idOf('text'), 'fault')
  })
})

describe('bundleFault', () => {
  it('refuses histories and responses, and no other type', () => {
    const types = ['collection', 'transaction', 'batch', 'searchset', 'document', 'message', undefined]
    assert.deepEqual(
      types.map(bundleFault),
      types.map(() => undefined),
    )
    for (const type of ['history', 'batch-response', 'transaction-response'])
      assert.match(String(bundleFault(type)), /not imported/)
  })
})
