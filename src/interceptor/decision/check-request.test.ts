import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Work } from '../../fhir/index.ts'
import { computeAccess } from '../../smart/index.ts'
import { makeGrant, policy } from '../testing/decide-request.ts'
import { fhirBaseUrl } from '../testing/test-issuer.ts'
import { checkRequest, collectPatchedParts, readEntries } from './check-request.ts'

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
    const entries = readEntries(bundle, fhirBaseUrl, grant, computeAccess(grant, policy), new Work())
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

const collect = (...patch: readonly unknown[]) => collectPatchedParts(patch, 'Observation')

const add = (path: unknown, value: unknown) => ({ op: 'add', path, value })

const remove = (path: string) => ({ op: 'remove', path })

describe('collectPatchedParts with a JSON Patch', () => {
  const cases: Readonly<Record<string, readonly [patch: readonly unknown[], parts: object]>> = {
    'a value at its path': [[add('/status', 'final')], { status: 'final' }],
    'a replaced value': [[{ op: 'replace', path: '/status', value: 'final' }], { status: 'final' }],
    'an element of a list': [[add('/performer/0', { display: 'x' })], { performer: [{ display: 'x' }] }],
    'two elements appended to a list': [[add('/note/-', 'a'), add('/note/-', 'b')], { note: ['a', 'b'] }],
    'a member of an element': [
      [add('/performer/0', { display: 'x' }), add('/performer/0/reference', 'Patient/2')],
      { performer: [{ display: 'x', reference: 'Patient/2' }] },
    ],
    'a member of an element of a written list': [
      [add('/performer', [{ display: 'x' }]), add('/performer/0/reference', 'Patient/2')],
      { performer: [{ display: 'x', reference: 'Patient/2' }] },
    ],
    'the last of two values at one path': [[add('/status', 'a'), add('/status', 'b')], { status: 'b' }],
    'no value that is removed later': [
      [add('/subject/reference', 'a'), remove('/subject/reference')],
      { subject: {} },
    ],
    'null, an empty list and a list as they are': [
      [add('/a', null), add('/b', []), add('/c', [{ d: 1 }])],
      { a: null, b: [], c: [{ d: 1 }] },
    ],
    'the members of an object with names and numbers': [
      [add('/a/0', 1), add('/a/b', 2)],
      { a: { 0: 1, b: 2 } },
    ],
    'a member below a value that has no members': [[add('/a', 'text'), add('/a/b', 1)], { a: { b: 1 } }],
    'names with escaped characters': [
      [add('/a~1b', 1), add('/c~0d', 2), add('/e~01', 3)],
      { 'a/b': 1, 'c~d': 2, 'e~1': 3 },
    ],
    'nothing of an operation with a path that is none': [
      [add('status', 'x'), add(5, 'x'), add(undefined, 'x'), add('', {})],
      {},
    ],
    'nothing of a test, a copy or a move': [
      ['test', 'copy', 'move'].map(op => ({ op, path: '/a', from: '/b', value: 1 })),
      {},
    ],
  }
  for (const [what, [patch, parts]] of Object.entries(cases))
    it(`collects ${what}`, () => assert.deepEqual(collect(...patch), parts))

  it('reads __proto__ as a member, not as the prototype', () => {
    const parts = collect(add('/__proto__/a', 1), add('/__proto__/b', 2))
    assert.deepEqual(Object.entries(parts ?? {}), [['__proto__', { a: 1, b: 2 }]])
  })

  it('returns undefined for a malformed patch', () => {
    for (const patch of [undefined, null, 'x', {}, [1], [add('/a', 1), null]])
      assert.equal(collectPatchedParts(patch, 'Observation'), undefined)
  })
})

describe('checkRequest with a Bundle of chains', () => {
  const check = (entries: number, query: string) => {
    const grant = makeGrant({ scope: 'system/*.rs' })
    const entry = Array.from({ length: entries }, () => makeEntry(`GET List?${query}`))
    return checkRequest({ kind: 'bundle' }, makeBundle('batch', ...entry), grant, {
      ...policy,
      contexts: ['system'],
    })
  }

  it('refuses more work than one request may cause', () => {
    const decision = check(2_000, Array(16).fill('item._id=x').join('&'))
    assert(!decision.allowed)
    assert.equal(decision.refusal.reason, 'search-costs-too-much')
  })

  it('permits many chains that name the type', () => {
    assert.equal(check(2_000, 'item:Patient._id=x').allowed, true)
  })
})

describe('collectPatchedParts with a FHIRPath Patch', () => {
  const operation = (type: string, path: string, more: readonly object[]) => ({
    name: 'operation',
    part: [{ name: 'type', valueCode: type }, { name: 'path', valueString: path }, ...more],
  })
  const collectAll = (...parameter: readonly object[]) =>
    collectPatchedParts({ resourceType: 'Parameters', parameter }, 'Observation')
  const value = { name: 'value', valueReference: { reference: 'Patient/2' } }

  it('collects the written values, and nothing for a path to the whole resource', () => {
    assert.deepEqual(collectAll(operation('replace', 'Observation.subject', [value])), {
      subject: { reference: 'Patient/2' },
    })
    assert.deepEqual(collectAll(operation('replace', 'Observation', [value])), {})
  })
})
