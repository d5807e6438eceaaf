import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Interaction, parseInteraction } from '../../fhir/index.ts'
import { type Access, type AccessFilter, fullAccess } from '../../smart/index.ts'
import { makeBundle, makeCondition } from '../testing/test-host.ts'
import { fhirBaseUrl } from '../testing/test-issuer.ts'
import { chooseResponseRule, createResponseCheck, findOutside } from './check-response.ts'

const OWN: AccessFilter = [{ patient: '1' }]

const limited: Access = { filterFor: () => OWN }

const read: Interaction = { kind: 'read', type: 'Condition', id: '1', params: [] }

const search: Interaction = { kind: 'search-type', type: 'Condition', params: [] }

const create: Interaction = { kind: 'create', type: 'Condition' }

function verdict(interaction: Interaction, status: number, body: unknown, entries: Interaction[] = []) {
  const check = createResponseCheck(interaction, entries, limited, fhirBaseUrl)
  assert(check)
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const answer = check({ status, body: Buffer.from(text) })
  if (typeof answer === 'string') return answer
  return answer.allowed
    ? JSON.parse(answer.body)
    : [answer.allowed, answer.status, answer.outcome.issue[0]?.code]
}

const OUTSIDE = [false, 403, 'forbidden']

describe('createResponseCheck', () => {
  it('is not needed if the grant covers everything', () => {
    assert.equal(createResponseCheck(search, [], fullAccess, fhirBaseUrl), undefined)
    for (const permission of ['r', 's']) {
      const half: Access = { filterFor: (_, requested) => (requested === permission ? 'everything' : OWN) }
      assert(createResponseCheck(search, [], half, fhirBaseUrl), permission)
    }
  })

  it('releases the response to a read of a type that the grant covers, unless it is a resource of another type', () => {
    const reads: Access = {
      filterFor: (type, permission) => (type === 'Condition' && permission === 'r' ? 'everything' : OWN),
    }
    for (const interaction of [
      read,
      { kind: 'vread', type: 'Condition', id: '1', version: '1', params: [] },
      { kind: 'history-instance', type: 'Condition', id: '1', params: [] },
    ] as const)
      for (const [body, isReleased] of [
        [JSON.stringify(makeCondition('2')), true],
        ['<Condition/>', true],
        ['', true],
        [JSON.stringify({ resourceType: 'Patient', id: '2' }), false],
      ] as const) {
        const check = createResponseCheck(interaction, [], reads, fhirBaseUrl)
        const verdict = check?.({ status: 200, body: Buffer.from(body) })
        assert.equal(verdict === 'release', isReleased, `${interaction.kind} ${body}`)
      }
  })

  it('releases what the grant covers, and refuses everything else', () => {
    assert.equal(verdict(read, 200, makeCondition('1')), 'release')
    assert.equal(verdict(search, 200, makeBundle(makeCondition('1'))), 'release')
    for (const body of [makeCondition('2'), '', 'x', '5', '[]', makeBundle(makeCondition('1'))])
      assert.deepEqual(verdict(read, 200, body), OUTSIDE)
  })

  it('confirms a write, and releases its content only if the grant covers it', () => {
    assert.equal(verdict(create, 201, makeCondition('1')), 'release')
    assert.equal(verdict(create, 201, ''), 'release')
    for (const body of [makeCondition('2'), 'x', '5']) assert.equal(verdict(create, 201, body), 'empty')
  })

  it('keeps only the status of a failure, unless it is an OperationOutcome', () => {
    for (const status of [300, 400, 500])
      for (const body of [makeCondition('1'), 'x', '', { issue: [] }])
        assert.deepEqual(verdict(read, status, body), [false, status, 'processing'])
    assert.equal(verdict(read, 400, { resourceType: 'OperationOutcome', issue: [] }), 'release')
    for (const status of [304, 404, 410])
      assert.deepEqual(verdict(read, status, { resourceType: 'OperationOutcome' }), OUTSIDE)
  })

  it('requires one response entry for each entry of a Bundle', () => {
    const answered = (body: unknown) => verdict({ kind: 'bundle' }, 200, body, [read])
    const entry = { resource: makeCondition('1'), response: { status: '200' } }
    assert.equal(answered({ resourceType: 'Bundle', entry: [entry] }), 'release')
    for (const body of [
      { resourceType: 'Bundle' },
      { resourceType: 'Bundle', entry: [] },
      { resourceType: 'Bundle', entry: [entry, entry] },
      { resourceType: 'Bundle', entry: { 0: entry, length: 1 } },
      { resourceType: 'Parameters', entry: [entry] },
      { entry: [entry] },
    ])
      assert.deepEqual(answered(body), OUTSIDE, JSON.stringify(body))
  })

  it('replaces the entries of a Bundle that the grant does not cover, all alike (LIBRARY-2)', () => {
    const own = { resource: makeCondition('1'), response: { status: '200' } }
    const foreign = {
      resource: makeCondition('2'),
      response: { status: '200', etag: 'W/"7"', location: 'x' },
    }
    const bundle = { resourceType: 'Bundle', id: 'b' }
    for (const entry of [foreign, { response: { status: '404 Not Found' } }, null, 'x', { resource: 'x' }]) {
      const sent = verdict({ kind: 'bundle' }, 200, { ...bundle, entry: [own, entry] }, [read, read])
      assert.deepEqual([sent.id, sent.entry[0], sent.entry.length], ['b', own, 2])
      assert.deepEqual(Object.keys(sent.entry[1]), ['response'])
      const { status, outcome } = sent.entry[1].response
      assert.deepEqual([status, outcome.issue[0].code], ['403 Forbidden', 'forbidden'])
    }
    const written = verdict({ kind: 'bundle' }, 200, { ...bundle, entry: [foreign, own] }, [create, read])
    assert.deepEqual(written.entry, [{ response: { status: '200', location: 'x' } }, own])
  })
})

/** Reports the requested permission as an id. */
const access: Access = { filterFor: (_, permission) => [{ id: permission }] }

function parseLine(line: string): Interaction {
  const [method = '', url = ''] = line.split(' ')
  const [path = '', query = ''] = url.split('?')
  const interaction = parseInteraction({ method, path, query, headers: {} })
  assert(interaction.kind !== 'misunderstood', line)
  return interaction
}

const SHOWN: Readonly<Record<string, string>> = {
  'GET /metadata': 'r one',
  'GET /.well-known/smart-configuration': 'r one',
  'GET /Condition/1': 'r one',
  'GET /Condition/1/_history/2': 'r one',
  'GET /Condition/1/_history': 'r many',
  'GET /Condition/_history': 's many',
  'GET /_history': 's many',
  'GET /Condition?code=1': 's many',
  'GET /': 's many',
  'GET /Patient/1/Condition': 's many',
  'GET /Patient/1/$everything': 's many',
  'POST /': 's many',
  'POST /Condition': 'r one written',
  'PUT /Condition/1': 'r one written',
  'PUT /Condition?code=1': 'r one written',
  'PATCH /Condition/1': 'r one written',
  'PATCH /Condition?code=1': 'r one written',
  'DELETE /Condition/1': 'r one written',
  'DELETE /Condition?code=1': 'r one written',
}

describe('chooseResponseRule', () => {
  for (const [line, expected] of Object.entries(SHOWN))
    it(`chooses the rule for the response to ${line}`, () => {
      const { filter, many, written } = chooseResponseRule(parseLine(line), access)
      const [limit] = filter('Condition')
      assert(typeof limit === 'object')
      assert.equal([limit.id, many ? 'many' : 'one', ...(written ? ['written'] : [])].join(' '), expected)
    })
})

describe('findOutside', () => {
  const mayRelease = (...args: Parameters<typeof findOutside>) => findOutside(...args) === undefined
  const own = { filter: () => [{ patient: '1' }], written: false }
  const bundle = (entry: unknown) => ({ resourceType: 'Bundle', entry })

  it('checks the entries of a Bundle only if the response may be one', () => {
    const one = bundle([{ resource: makeCondition('1') }])
    assert.equal(mayRelease(one, { ...own, many: true }, fhirBaseUrl), true)
    assert.equal(mayRelease(one, { ...own, many: false }, fhirBaseUrl), false)
    assert.equal(mayRelease(bundle([{ request: {} }]), { ...own, many: true }, fhirBaseUrl), true)
    assert.equal(mayRelease(bundle(undefined), { ...own, many: true }, fhirBaseUrl), true)
  })

  it('does not release what it cannot read', () => {
    for (const entry of [
      'x',
      {},
      5,
      { every: 'x' },
      [null],
      ['x'],
      [{ resource: null }],
      [{ resource: 'x' }],
    ])
      assert.equal(
        mayRelease(bundle(entry), { ...own, many: true }, fhirBaseUrl),
        false,
        JSON.stringify(entry),
      )
    for (const body of [undefined, null, 'x', [], {}])
      assert.equal(mayRelease(body, { ...own, many: true }, fhirBaseUrl), false)
  })
})
