import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parsePassedOperation } from '../fhir/index.ts'
import { explain, type Question } from './explain.ts'
import { fhirBaseUrl } from './testing/test-issuer.ts'

function ask(line: string, scope: string, more: Partial<Question> = {}) {
  const [method = '', url = ''] = line.split(' ')
  const settings = { searchPermission: 'r', contexts: ['patient', 'user', 'system'] } as const
  return explain({ method, url, scope, patient: '1', ...settings, ...more }, fhirBaseUrl)
}

const NOT_WITHIN = 'Not within the granted patient, user or filter.'
const condition = (reference: string, more: object = {}) => ({
  resourceType: 'Condition',
  subject: { reference },
  ...more,
})
const bundle = (type: string, ...entry: object[]) => ({ resourceType: 'Bundle', type, entry })
const entry = (line: string, resource?: object, more: object = {}) => {
  const [method, url] = line.split(' ')
  return { request: { method, url }, resource, ...more }
}

describe('explain', () => {
  it('reports the scope, the compartment and the filters (CLI-4)', () => {
    assert.deepEqual(ask('GET /Condition?patient=1', 'openid patient/Condition.rs'), {
      allowed: true,
      status: 200,
      by: 'patient/Condition.rs',
      within: 'Patient/1',
      limits: [],
      text: 'Allowed by patient/Condition.rs, within Patient/1.',
    })
    const filtered = ask(
      'GET /Observation',
      'patient/Observation.rs?category=a&status=final patient/Observation.rs?code=b',
    )
    assert.deepEqual([filtered.within, filtered.limits], ['Patient/1', ['category=a&status=final', 'code=b']])
    assert.deepEqual(
      ask('GET /Observation', 'patient/Observation.rs?category=a patient/Observation.rs').limits,
      [],
    )
  })

  it('names the resource type or scope that was probably meant (CLI-4)', () => {
    for (const url of ['/Observaton', 'observation/1', '/Observations?patient=1'])
      assert.equal(
        ask(`GET ${url}`, 'patient/*.rs').hint,
        'The resource type is misspelt: write Observation',
        url,
      )
    const { hint = '' } = ask('GET /Observation', 'openid patient/Observaton.rs patient/Condition.sr')
    assert.match(
      hint,
      /^patient\/Observaton\.rs permits nothing: write patient\/Observation\.rs\. patient\/Condition\.sr permits nothing: write patient\/Condition\.rs\. Any one of/,
    )
    assert.equal(ask('GET /Observation', 'patient/Observation.rs patient/Observaton.rs').hint, undefined)
  })

  it('accepts a URL with and without a leading slash, and without a path', () => {
    for (const url of [
      '/Condition?patient=1',
      'Condition?patient=1',
      'Condition',
      '/?_type=Condition',
      '?_type=Condition',
    ])
      assert.equal(ask(`GET ${url}`, 'patient/Condition.rs').by, 'patient/Condition.rs', url)
    for (const url of ['', '/', '?_type=Observation'])
      assert.equal(ask(`GET ${url}`, 'patient/Patient.rs').allowed, url.length < 2, url)
  })

  it('reports what permits the request: a scope, the user’s own resource, or each entry; and the filter', () => {
    const text = (line: string, scope: string, more: Partial<Question> = {}) => ask(line, scope, more).text
    assert.equal(
      text('GET /Observation', 'patient/Observation.rs?category=a'),
      'Allowed by patient/Observation.rs?category=a, within Patient/1, where category=a.',
    )
    assert.equal(
      text('GET /Practitioner/9', 'openid', { fhirUser: 'Practitioner/9' }),
      "Allowed as the user's own resource, where _id=9.",
    )
    const batch = bundle('batch', entry('GET Condition/1'))
    assert.equal(text('POST /', 'system/*.rs', { body: batch }), 'Allowed by each of its entries.')
    assert.equal(text('GET /metadata', ''), 'Allowed to all.')
  })

  it('mentions no patients if another scope covers data of all', () => {
    assert.equal(
      ask('GET /Condition', 'patient/Condition.rs system/Condition.rs?code=x').text,
      'Allowed by patient/Condition.rs.',
    )
  })

  it('decides by the operations that the server offers', () => {
    const meta = parsePassedOperation('$meta')
    assert(meta)
    assert.equal(ask('GET /$meta', 'system/*.rs').status, 404)
    assert.equal(ask('GET /$meta', 'system/*.rs', { operations: [meta] }).status, 200)
  })

  it('ignores a form that is not a search', () => {
    assert.equal(ask('POST /Condition', 'patient/Condition.c', { body: 'a=b' }).allowed, true)
  })

  it('refuses after an internal error', () => {
    const userFilter = () => {
      throw new Error('broken')
    }
    const { allowed, status } = ask('GET /Condition', 'user/*.rs', { fhirUser: 'Practitioner/9', userFilter })
    assert.deepEqual([allowed, status], [false, 500])
  })

  it('reports no compartment if there is none', () => {
    for (const scope of ['system/*.rs', 'patient/Condition.rs system/Condition.rs'])
      assert.deepEqual(
        [ask('GET /Condition/1', scope).by, ask('GET /Condition/1', scope).within],
        [scope.split(' ').at(-1), null],
      )
    assert.equal(ask('GET /Practitioner/1', 'patient/*.rs').within, null)
    assert.equal(ask('GET /metadata', '').text, 'Allowed to all.')
    const own = ask('GET /Practitioner/p1', 'openid', { fhirUser: 'Practitioner/p1' })
    assert.deepEqual([own.by, own.within, own.limits], ['fhirUser', null, ['_id=p1']])
  })

  it('reports a refusal with its text and the scopes that would permit the request', () => {
    const refused = ask('POST /Condition', 'patient/Condition.rs')
    assert.equal(refused.status, 403)
    assert.equal(
      refused.text,
      'Insufficient scope for POST on Condition. Required: patient/Condition.c or patient/*.c',
    )
    assert.match(refused.hint ?? '', /patient\/Condition\.c/)
    assert.equal(ask('GET /Condition/1', 'patient/*.rs', { patient: undefined }).text, NOT_WITHIN)
    assert.equal(ask('GET /Patient/%31', 'patient/*.rs').status, 400)
    assert.equal(ask('GET /patient/1', 'patient/*.rs').status, 404)
    assert.equal(ask('OPTIONS /Patient/1', 'patient/*.rs').status, 405)
  })

  it('suggests the scopes of every context that would help this token, and no others', () => {
    const hint = (line: string, more: Partial<Question>) => ask(line, 'openid', more).hint
    const permit = 'Any one of these scopes would permit it:'
    const fhirUser = 'Practitioner/9'
    assert.equal(
      hint('GET /Patient/1', { fhirUser, contexts: ['patient', 'user'] }),
      `${permit} patient/Patient.r, patient/*.rs, user/Patient.r, user/*.rs`,
    )
    assert.equal(
      hint('GET /Patient/1', { patient: undefined }),
      `${permit} system/Patient.r, system/*.rs; a patient/ scope needs a patient in the token; a user/ scope needs a fhirUser in the token`,
    )
    assert.equal(
      hint('POST /Practitioner', { fhirUser }),
      `${permit} user/Practitioner.c, user/*.c, system/Practitioner.c, system/*.c`,
    )
    assert.equal(
      hint('POST /Practitioner', { contexts: ['patient'] }),
      'No scope would permit it with this token',
    )
    assert.equal(hint('GET /?_type=Patient,Condition', { contexts: ['patient'] })?.startsWith(permit), true)
  })

  it('reads a form as the parameters of a search', () => {
    assert(ask('POST /Condition/_search', 'patient/Condition.rs', { body: 'patient=1' }).allowed)
    assert(ask('POST /Condition/_search', 'patient/Condition.rs').allowed)
    assert.match(
      ask('POST /Condition/_search', 'patient/Condition.rs', { body: 'patient.name=a' }).text,
      /on Patient\./,
    )
  })

  it('checks the content of a write', () => {
    const write = (line: string, body: unknown, scope = 'patient/*.cruds') => ask(line, scope, { body })
    assert(write('POST /Condition', condition('Patient/1')).allowed)
    assert(write('PUT /Condition/5', condition(`${fhirBaseUrl}/Patient/1`, { id: '5' })).allowed)
    assert(write('POST /Patient', { resourceType: 'Patient' }).allowed)
    assert.equal(write('POST /Condition', condition('Patient/2')).text, NOT_WITHIN)
    assert.equal(
      write('POST /Condition', condition('Patient/1', { asserter: { reference: 'Patient/2' } })).text,
      NOT_WITHIN,
    )
    assert.equal(write('POST /Condition', { resourceType: 'Condition' }).text, NOT_WITHIN)
    assert.equal(write('PUT /Condition?code=1', condition('Patient/2')).text, NOT_WITHIN)
    for (const body of [
      condition('Patient/1'),
      condition('Patient/1', { id: '6' }),
      { resourceType: 'Observation', id: '5' },
      1,
      [],
      {},
    ])
      assert.equal(write('PUT /Condition/5', body).status, 400)
    const lab = 'patient/Observation.c?category=lab'
    const observation = (code: string) => ({
      resourceType: 'Observation',
      category: [{ coding: [{ code }] }],
      subject: { reference: 'Patient/1' },
    })
    assert(write('POST /Observation', observation('lab'), lab).allowed)
    assert.equal(write('POST /Observation', observation('vital'), lab).text, NOT_WITHIN)
  })

  it('refuses a patch that names another patient, whatever it patches', () => {
    const patch = (...body: object[]) => ask('PATCH /Condition/1', 'patient/Condition.u', { body })
    const to = (path: string, value: unknown, op = 'replace') => ({ op, path, value })
    assert(patch(to('/subject/reference', 'Patient/1')).allowed)
    assert(patch(to('/code/text', 'x'), { op: 'remove', path: '/note' }).allowed)
    assert(
      patch(to('/subject', { reference: 'Patient/2' }), to('/subject', { reference: 'Patient/1' })).allowed,
    )
    assert(
      patch(to('/asserter', { reference: 'Patient/2' }, 'add'), { op: 'remove', path: '/asserter' }).allowed,
    )
    assert.equal(patch(to('/subject/reference', 'Patient/2')).text, NOT_WITHIN)
    assert.equal(patch(to('/asserter', { reference: 'Patient/2' }, 'add')).text, NOT_WITHIN)
    const performer = ask('PATCH /Observation/1', 'patient/*.u', {
      body: [to('/performer/-', { reference: 'Patient/2' }, 'add')],
    })
    assert.equal(performer.text, NOT_WITHIN)
    const bit = (path: string, value: unknown) => to(path, value, 'add')
    for (const ops of [
      [bit('/asserter/reference', 'Patient/2'), bit('/asserter/display', 'x')],
      [bit('/asserter', { reference: 'Practitioner/1' }), bit('/asserter/reference', 'Patient/2')],
      [bit('/asserter', null), bit('/asserter/reference', 'Patient/2')],
      [bit('/note/0/text', 'x'), bit('/asserter', { reference: 'Patient/2' }), bit('/0', 'x')],
    ])
      assert.equal(patch(...ops).text, NOT_WITHIN)
    const performers = [
      bit('/performer/0', { reference: 'Practitioner/1' }),
      bit('/performer/0/reference', 'Patient/2'),
    ]
    assert.equal(ask('PATCH /Observation/1', 'patient/*.u', { body: performers }).text, NOT_WITHIN)
    assert(patch(to('/__proto__/x', 1, 'add'), to('/constructor', 1, 'add')).allowed)
    for (const body of [{}, [{ op: 'test' }, 1]])
      assert.equal(ask('PATCH /Condition/1', 'patient/*.u', { body }).status, 400)
    const elsewhere = { body: [to('/subject/reference', 'Patient/2')] }
    for (const scope of ['system/Condition.u?code=x', 'patient/Condition.u system/Condition.u?code=x'])
      assert(ask('PATCH /Condition/1', scope, elsewhere).allowed, scope)
    assert(ask('PATCH /Condition/1', 'system/*.u', { body: [to('/subject/reference', 'Patient/2')] }).allowed)
  })

  it('checks every entry of a Bundle', () => {
    const run = (body: unknown, scope = 'patient/Condition.cruds patient/Patient.cru') =>
      ask('POST /', scope, { body })
    const good = bundle(
      'batch',
      entry('GET Condition?patient=1'),
      entry('POST Condition', condition('Patient/1')),
    )
    assert.deepEqual([run(good).allowed, run(good).within], [true, 'Patient/1'])
    assert.match(
      run(bundle('batch', entry('GET Condition/1'), entry('GET Observation/1'))).text,
      /^Insufficient scope for GET on Observation\./,
    )
    assert.equal(run(bundle('transaction', entry('POST Condition', condition('Patient/2')))).text, NOT_WITHIN)
    assert.equal(run(bundle('batch', entry('DELETE Condition/../Patient/1'))).status, 400)
    assert.equal(run(bundle('batch', entry('POST /', good))).status, 400)
    assert.equal(run(bundle('document')).status, 400)
    assert.equal(run(bundle('batch', {})).status, 400)
    assert.equal(run({ ...bundle('batch'), entry: [1] }).status, 400)
    assert.equal(run([]).status, 400)
    assert.equal(run({ ...good, resourceType: 'Patient' }).status, 400)
    assert.equal(run({ ...good, entry: {} }).status, 400)
    assert.equal(run({ ...good, entry: [...good.entry, 1] }).status, 400)
    assert.equal(run(bundle('batch', { request: { method: 'GET', url: 5 } })).status, 400)
    assert.equal(run(bundle('batch', { request: { method: 5, url: 'Condition/1' } })).status, 400)
    const mixed = bundle('batch', entry('GET Practitioner/1'), entry('GET Condition/1'))
    assert.equal(run(mixed, 'patient/*.rs').within, 'Patient/1')
    const ifNoneExist = {
      request: { method: 'POST', url: 'Observation', ifNoneExist: 'code=1' },
      resource: { resourceType: 'Observation', subject: { reference: 'Patient/1' } },
    }
    assert.match(
      run(bundle('batch', ifNoneExist), 'patient/Observation.c').text,
      /Required: patient\/Observation\.r/,
    )
  })

  it('resolves references inside a Bundle before it checks them (BUNDLE-4)', () => {
    const run = (...entries: object[]) =>
      ask('POST /', 'patient/*.cruds', { body: bundle('transaction', ...entries) })
    const fullUrl = 'urn:uuid:11111111-1111-4111-8111-111111111111'
    const own = entry('PUT Patient/1', { resourceType: 'Patient', id: '1' }, { fullUrl })
    const fresh = entry('POST Patient', { resourceType: 'Patient' }, { fullUrl })
    assert(run(own, entry('POST Condition', condition(fullUrl))).allowed)
    assert.equal(run(fresh, entry('POST Condition', condition(fullUrl))).text, NOT_WITHIN)
    assert.equal(
      run(fresh, entry('POST Condition', condition('Patient/1', { asserter: { reference: fullUrl } }))).text,
      NOT_WITHIN,
    )
    assert.equal(run(entry('POST Condition', condition(fullUrl))).text, NOT_WITHIN)
  })
})
