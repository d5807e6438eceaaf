import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseEntry } from './parse-entry.ts'

const base = 'http://localhost:8080/fhir'

describe('parseEntry', () => {
  it('reads an address relative to the base or absolute under it', () => {
    const read = { kind: 'read', type: 'Patient', id: '1', params: [] }
    for (const url of ['Patient/1', '/Patient/1', `${base}/Patient/1`])
      assert.deepEqual(parseEntry({ method: 'GET', url }, base), read)
  })

  it('reads queries and ifNoneExist', () => {
    assert.deepEqual(parseEntry({ method: 'DELETE', url: 'Condition?code=1' }, base), {
      kind: 'delete-conditional',
      type: 'Condition',
      params: [['code', '1']],
    })
    assert.deepEqual(parseEntry({ method: 'POST', url: 'Patient', ifNoneExist: 'identifier=1' }, base), {
      kind: 'create',
      type: 'Patient',
      ifNoneExist: [['identifier', '1']],
    })
    for (const url of ['?_type=Patient', '/?_type=Patient', `${base}?_type=Patient`])
      assert.deepEqual(parseEntry({ method: 'GET', url }, base), {
        kind: 'search-system',
        params: [['_type', 'Patient']],
      })
  })

  for (const [method, url] of [
    ['GET', 'http://evil.example/fhir/Patient/1'],
    ['GET', `${base}x/Patient/1`],
    ['GET', '//Patient/1'],
    ['GET', 'Patient/../Condition/1'],
    ['GET', 'urn:uuid:0f0e0d0c-0000-4000-8000-000000000000'],
    ['POST', ''],
    ['POST', '/'],
    ['POST', base],
    ['POST', 'Patient/_search'],
    ['OPTIONS', 'Patient'],
    ['GET', 'Patient?name=\ud800'],
    ['GET', 'Patient?\udc00=x'],
  ] as const)
    it(`refuses ${method} ${url.toWellFormed()}`, () => {
      assert.equal(parseEntry({ method, url }, base).kind, 'misunderstood')
    })
})
