import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { computeAccess } from '../../smart/index.ts'
import { makeGrant, policy } from '../testing/decide-request.ts'
import { fhirBaseUrl } from '../testing/test-issuer.ts'
import { checkRequest, readEntries } from './check-request.ts'

const URN = 'urn:uuid:11111111-1111-4111-8111-111111111111'
const makeBundle = (type: string, ...entry: object[]) => ({ resourceType: 'Bundle', type, entry })
const makeEntry = (line: string, resource?: object, fullUrl?: unknown) => {
  const [method, url] = line.split(' ')
  return { request: { method, url }, resource, fullUrl }
}
const condition = (subject: string, more: object = {}) =>
  makeEntry('POST Condition', { resourceType: 'Condition', subject: { reference: subject }, ...more })

describe('readEntries with a transaction', () => {
  const check = (...entries: object[]) => {
    const grant = makeGrant({ scope: 'patient/*.cruds', patient: '1' })
    return checkRequest({ kind: 'bundle' }, makeBundle('transaction', ...entries), grant, policy).allowed
  }
  const newPatient = (fullUrl: string) => makeEntry('POST Patient', { resourceType: 'Patient' }, fullUrl)

  it('reads a reference to a new Patient as one to another patient, whatever its fullUrl is', () => {
    for (const fullUrl of [URN, 'Patient/1', `${fhirBaseUrl}/Patient/1`, 'Practitioner/9']) {
      assert.equal(check(newPatient(fullUrl), condition(fullUrl)), false, fullUrl)
      const asserter = { asserter: { reference: fullUrl } }
      assert.equal(check(newPatient(fullUrl), condition('Patient/1', asserter)), false, fullUrl)
    }
  })

  it('reads a reference to an updated resource as one to its id', () => {
    const own = makeEntry('PUT Patient/1', { resourceType: 'Patient', id: '1' }, URN)
    assert.equal(check(own, condition(URN)), true)
    assert.equal(check(own, condition('urn:uuid:22222222-2222-4222-8222-222222222222')), false)
  })

  it('resolves no reference to an entry that neither creates nor updates', () => {
    assert.equal(check(makeEntry('GET Patient/1', undefined, URN), condition(URN)), false)
  })

  it('permits a reference to another new resource that is not a Patient', () => {
    const encounter = makeEntry(
      'POST Encounter',
      { resourceType: 'Encounter', subject: { reference: 'Patient/1' } },
      URN,
    )
    assert.equal(check(encounter, condition('Patient/1', { encounter: { reference: URN } })), true)
  })

  it('ignores a fullUrl that is not a string', () => {
    assert.equal(
      check(makeEntry('PUT Patient/1', { resourceType: 'Patient', id: '1' }, 5), condition(URN)),
      false,
    )
  })
})

describe('readEntries with a conditional reference', () => {
  const resolve = (scope: string, type = 'transaction', patient: string | undefined = '1') => {
    const grant = makeGrant({ scope, ...(patient !== undefined && { patient }) })
    const bundle = makeBundle(type, condition('Patient?identifier=x'))
    const entries = readEntries(bundle, fhirBaseUrl, grant, computeAccess(grant, policy))
    assert('length' in entries)
    return entries.map(({ body }) => (body as { subject: object }).subject)
  }

  it('resolves to the patient of the token if a search can find no other', () => {
    assert.deepEqual(resolve('patient/*.cruds'), [{ reference: 'Patient/1' }])
  })

  it('resolves to nothing if a search can find others or none, or outside a transaction', () => {
    const unresolved = [{ reference: 'Patient?identifier=x' }]
    assert.deepEqual(resolve('system/*.cruds'), unresolved)
    assert.deepEqual(resolve('patient/Condition.c'), unresolved)
    assert.deepEqual(resolve('patient/*.cruds', 'batch'), unresolved)
  })
})
