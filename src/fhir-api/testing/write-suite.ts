import assert from 'node:assert/strict'
import { after, before, describe } from 'node:test'
import {
  BASE,
  condition,
  createAuthenticator,
  type Fhir,
  NOT_WITHIN,
  observation,
  patient,
  type Reply,
  readIds,
  readIssue,
} from '../../backends/sqlite/testing/fhir.ts'
import { type Access, fullAccess } from '../../smart/index.ts'
import { needs, type TestTarget } from './target.ts'

const PATCH = { 'content-type': 'application/json-patch+json' }

/** May create patients, and write resources that belong to one patient only. */
export const exclusive: Access = {
  filterFor: (type, permission) =>
    type === 'Practitioner'
      ? 'rs'.includes(permission)
        ? 'everything'
        : []
      : type === 'Patient' && permission === 'c'
        ? 'everything'
        : 'cud'.includes(permission)
          ? [{ patient: 'ann', exclusive: true }]
          : [{ patient: 'ann' }],
}

/** May do everything with all types but one, so that the gateway checks every request. */
export const most: Access = { filterFor: type => (type === 'Basic' ? [] : 'everything') }

const guard = createAuthenticator({ all: fullAccess, most, ann: exclusive })

/** Reads and writes of single resources. */
export function testWrites(target: TestTarget): void {
  describe('with access to most types', () => testWritesBy(target, 'most'))
  describe('with access to everything', () => testWritesBy(target, 'all'))
  describe('within a compartment', () => testWritesWithin(target))
}

function testWritesBy(target: TestTarget, caller: 'most' | 'all'): void {
  const it = needs(target)
  const itRefuses = caller === 'all' ? needs(target, 'same-refusals') : it
  const itInvalid = needs(target, 'validation', ...(caller === 'all' ? (['same-refusals'] as const) : []))
  /** The responses of an unlimited caller come from the upstream itself. */
  const itAnswers = caller === 'all' ? needs(target, 'same-responses') : it
  const itConditional = needs(target, 'conditional-writes')
  let fhir: Fhir
  before(async () => {
    fhir = (await target.start({ guard })).as(caller)
    assert.ok((await fhir('PUT Patient/bob', patient('bob'))).status < 300)
  })
  after(() => fhir.close())

  describe('create', () => {
    needs(target, 'locations')('responds with 201, the resource, its id, version, time and URL', async () => {
      const made = await fhir('POST Patient', { resourceType: 'Patient', id: 'mine', gender: 'female' })
      assert.equal(made.status, 201)
      const id = made.body.id ?? ''
      assert.notEqual(id, 'mine')
      assert.deepEqual(Object.keys(made.body).toSorted(), ['gender', 'id', 'meta', 'resourceType'])
      assert.deepEqual([made.body.resourceType, made.body.gender], ['Patient', 'female'])
      const version = made.body.meta?.versionId
      assert.equal(made.headers.location, `${BASE}/Patient/${id}/_history/${version}`)
      assert.equal(made.headers.etag, `W/"${version}"`)
      assert.equal(made.headers['last-modified'], toHttpDate(made.body.meta?.lastUpdated))
      assert.equal(made.headers['content-type'], 'application/fhir+json; charset=utf-8')
      assert.equal((await fhir(`GET Patient/${id}`)).text, made.text)
    })

    it("stores the client's profiles and tags, but not its version or time", async () => {
      const meta = { versionId: '9', lastUpdated: '1999-01-01T00:00:00Z', tag: [{ code: 'x' }] }
      const made = await fhir('POST Patient', { resourceType: 'Patient', meta })
      const { tag, versionId, lastUpdated = '' } = made.body.meta ?? {}
      assert.match(JSON.stringify(tag), /^\[\{"code":"x"\}/)
      assert.notEqual(versionId, '9')
      assert.ok(Date.parse(lastUpdated) > Date.parse('2020-01-01'), lastUpdated)
    })

    needs(
      target,
      'locations',
      ...(caller === 'all' ? (['same-responses'] as const) : []),
    )('honours Prefer', async () => {
      const minimal = await fhir('POST Patient', { resourceType: 'Patient' }, { prefer: 'return=minimal' })
      assert.deepEqual([minimal.status, minimal.text], [201, ''])
      assert.match(String(minimal.headers.location), /\/Patient\/[\w-]+\/_history\/[\w-]+$/)
      const withOutcome = await fhir(
        'POST Patient',
        { resourceType: 'Patient' },
        { prefer: 'return=OperationOutcome' },
      )
      assert.deepEqual([withOutcome.status, withOutcome.body.resourceType], [201, 'OperationOutcome'])
    })

    itInvalid('responds with 422 and an issue with its path for each fault (FHIR-3)', async () => {
      const reply = await fhir('POST Patient', {
        resourceType: 'Patient',
        gender: 'x',
        birthDate: 'y',
        color: 1,
      })
      assert.equal(reply.status, 422)
      const paths = (reply.body.issue ?? []).map(it => it.expression?.[0]).sort()
      assert.deepEqual(paths, ['Patient.birthDate', 'Patient.color', 'Patient.gender'])
    })

    itRefuses('refuses a body of another type, or one that is not a resource', async () => {
      assert.equal(
        readIssue(await fhir('POST Patient', condition('1', '1'))),
        '400 invalid: Cannot accept body: expected a resource of type Patient',
      )
      for (const body of ['[]', '1', 'null', '"x"'])
        assert.equal(
          readIssue(await fhir('POST Patient', body)),
          '400 structure: Cannot read body: expected a Patient resource',
        )
    })
  })

  describe('read', () => {
    needs(target, ...(caller === 'all' ? (['same-responses', 'etag-of-304'] as const) : []))(
      'responds with 304 to a client that has the version (FHIR-14)',
      async () => {
        const { headers, body } = await fhir('POST Patient', { resourceType: 'Patient' })
        const line = `GET Patient/${body.id}`
        const etag = String(headers.etag)
        for (const tag of [etag, etag.slice(2), `"0", ${etag}`, '*']) {
          const reply = await fhir(line, undefined, { 'if-none-match': tag })
          assert.deepEqual([reply.status, reply.text, reply.headers.etag], [304, '', etag], tag)
        }
        assert.equal((await fhir(line, undefined, { 'if-none-match': 'W/"other"' })).status, 200)
        const since = String(headers['last-modified'])
        assert.equal((await fhir(line, undefined, { 'if-modified-since': since })).status, 304)
        const before = new Date(Date.parse(since) - 1000).toUTCString()
        assert.equal((await fhir(line, undefined, { 'if-modified-since': before })).status, 200)
        assert.equal((await fhir(line, undefined, { 'if-modified-since': 'nonsense' })).status, 200)
      },
    )

    itRefuses('responds with 404 for an absent resource and for an unknown type', async () => {
      assert.equal(readIssue(await fhir('GET Patient/none')), '404 not-found: Cannot find Patient/none')
      assert.equal((await fhir('GET Nothing/1')).status, 404)
      assert.equal((await fhir('GET Patient/1/nothing')).status, 404)
    })

    itAnswers('returns only the requested elements, and marks the subset', async () => {
      const { body } = await fhir('POST Patient', {
        resourceType: 'Patient',
        gender: 'male',
        birthDate: '2000',
      })
      const reply = await fhir(`GET Patient/${body.id}?_elements=birthDate`)
      assert.deepEqual(Object.keys(reply.body).toSorted(), ['birthDate', 'id', 'meta', 'resourceType'])
      assert.match(
        JSON.stringify(reply.body.meta?.tag),
        /\{"system":"http:\/\/terminology.hl7.org\/CodeSystem\/v3-ObservationValue","code":"SUBSETTED"/,
      )
    })

    itAnswers('keeps mandatory elements in a subset (FHIR-18)', async () => {
      const { body } = await fhir('POST MedicationRequest', {
        resourceType: 'MedicationRequest',
        text: { status: 'generated', div: '<div xmlns="http://www.w3.org/1999/xhtml">x</div>' },
        status: 'active',
        intent: 'order',
        priority: 'routine',
        medicationCodeableConcept: { text: 'x' },
        subject: { reference: 'Patient/bob' },
        note: [{ text: 'y' }],
      })
      const mandatory = ['status', 'intent', 'medicationCodeableConcept', 'subject']
      for (const [params, more] of [
        ['_summary=text', ['text']],
        ['_elements=note', ['note']],
      ] as const)
        for (const at of [
          `MedicationRequest/${body.id}?${params}`,
          `MedicationRequest?_id=${body.id}&${params}`,
        ]) {
          const reply = await fhir(`GET ${at}`)
          const resource = reply.body.entry?.[0]?.resource ?? reply.body
          const keys = new Set(
            Object.keys(resource).filter(key => !['resourceType', 'id', 'meta'].includes(key)),
          )
          assert.deepEqual(keys, new Set([...mandatory, ...more]), at)
        }
    })

    it('responds to HEAD as to GET, without the body', async () => {
      const { body, headers } = await fhir('POST Patient', { resourceType: 'Patient' })
      const reply = await fhir(`HEAD Patient/${body.id}`)
      assert.deepEqual([reply.status, reply.text, reply.headers.etag], [200, '', headers.etag])
      const { text } = await fhir(`GET Patient/${body.id}`)
      const length = String(Buffer.byteLength(text))
      assert.ok([undefined, length].includes(reply.headers['content-length'] as string | undefined))
    })
  })

  describe('update', () => {
    needs(
      target,
      'update-as-create',
      'numbered-versions',
    )("creates a resource under the client's id, then new versions (WRITE-4)", async () => {
      const made = await fhir('PUT Patient/put-1', patient('put-1'))
      assert.deepEqual([made.status, made.headers.etag], [201, 'W/"1"'])
      const changed = await fhir('PUT Patient/put-1', patient('put-1', { gender: 'other' }))
      assert.deepEqual([changed.status, changed.headers.etag, changed.body.gender], [200, 'W/"2"', 'other'])
      assert.ok((changed.body.meta?.lastUpdated ?? '') >= (made.body.meta?.lastUpdated ?? '?'))
      const first = await fhir('GET Patient/put-1/_history/1')
      assert.deepEqual([first.status, first.headers.etag, first.body.gender], [200, 'W/"1"', undefined])
      assert.equal((await fhir('GET Patient/put-1/_history/3')).status, 404)
    })

    needs(
      target,
      'update-as-create',
      'numbered-versions',
      'same-refusals',
    )('has no version with a leading zero', async () => {
      await fhir('PUT Patient/put-2', patient('put-2'))
      assert.equal((await fhir('GET Patient/put-2/_history/01')).status, 404)
    })

    needs(
      target,
      'update-as-create',
      'numbered-versions',
    )('requires the version that If-Match names (FHIR-14)', async () => {
      await fhir('PUT Patient/match', patient('match'))
      const put = (tag: string, gender: string) =>
        fhir('PUT Patient/match', patient('match', { gender }), { 'if-match': tag })
      assert.equal((await put('W/"1"', 'male')).status, 200)
      assert.equal(
        readIssue(await put('W/"1"', 'female')),
        '412 conflict: Cannot write: If-Match does not name the current version 2',
      )
      const stored = await fhir('GET Patient/match')
      assert.deepEqual([stored.headers.etag, stored.body.gender], ['W/"2"', 'male'])
      assert.equal((await fhir('PUT Patient/never', patient('never'), { 'if-match': 'W/"1"' })).status, 412)
      assert.equal((await fhir('PUT Patient/match', patient('match'), { 'if-none-match': '*' })).status, 412)
      assert.equal((await fhir('PUT Patient/once', patient('once'), { 'if-none-match': '*' })).status, 201)
    })

    itRefuses('refuses a body whose id is not the id in the URL', async () => {
      const mismatch = '400 invalid: Cannot update Patient/a: the id in the body is not the id in the URL'
      assert.equal(readIssue(await fhir('PUT Patient/a', patient('b'))), mismatch)
      assert.equal(readIssue(await fhir('PUT Patient/a', { resourceType: 'Patient' })), mismatch)
      assert.equal((await fhir('GET Patient/a')).status, 404)
    })
  })

  describe('patch', () => {
    const type = { 'content-type': 'application/json-patch+json' }

    it('applies a JSON Patch as the next version', async () => {
      const made = await fhir('PUT Patient/p', patient('p', { gender: 'male' }))
      const reply = await fhir('PATCH Patient/p', [{ op: 'replace', path: '/gender', value: 'other' }], type)
      assert.deepEqual([reply.status, reply.body.gender], [200, 'other'])
      assert.notEqual(reply.headers.etag, made.headers.etag)
      const stored = await fhir('GET Patient/p')
      assert.deepEqual([stored.headers.etag, stored.body.gender], [reply.headers.etag, 'other'])
    })

    itRefuses(
      'refuses a patch that cannot be applied, has an invalid result, or changes the identity',
      async () => {
        const made = await fhir('PUT Patient/q', patient('q', { gender: 'male' }))
        const ask = (patch: unknown, headers = type) => fhir('PATCH Patient/q', patch, headers)
        assert.equal(
          readIssue(await ask([{ op: 'test', path: '/gender', value: 'x' }])),
          '422 processing: Cannot apply patch: test of /gender failed',
        )
        assert.equal((await ask([{ op: 'replace', path: '/gender', value: 'x' }])).status, 422)
        assert.equal((await ask([{ op: 'replace', path: '/id', value: 'z' }])).status, 400)
        assert.equal((await ask([{ op: 'replace', path: '/resourceType', value: 'Group' }])).status, 400)
        assert.equal((await ask({ op: 'remove', path: '/gender' })).status, 400)
        assert.equal((await ask([], { 'content-type': 'application/fhir+json' })).status, 415)
        assert.equal((await fhir('GET Patient/q')).headers.etag, made.headers.etag)
        assert.equal((await fhir('PATCH Patient/none', [], type)).status, 404)
      },
    )
  })

  describe('delete', () => {
    needs(
      target,
      'deleted-versions',
      'numbered-versions',
    )('responds with 204 each time, and keeps the earlier versions (FHIR-14)', async () => {
      await fhir('PUT Patient/d', patient('d'))
      assert.deepEqual(
        [(await fhir('DELETE Patient/d')).status, (await fhir('DELETE Patient/d')).status],
        [204, 204],
      )
      const gone = await fhir('GET Patient/d')
      assert.equal(gone.status, 410)
      // The text for an unlimited caller is that of the upstream.
      if (caller === 'most')
        assert.equal(readIssue(gone), '410 deleted: Cannot read Patient/d: it has been deleted')
      assert.equal((await fhir('GET Patient/d/_history/1')).status, 200)
      assert.equal((await fhir('GET Patient/d/_history/2')).status, 410)
      assert.equal((await fhir('GET Patient?_id=d')).body.total, 0)
      assert.equal(
        (await fhir('PATCH Patient/d', [], { 'content-type': 'application/json-patch+json' })).status,
        410,
      )
      const again = await fhir('PUT Patient/d', patient('d'))
      assert.deepEqual([again.status, again.headers.etag], [201, 'W/"3"'])
    })

    it('honours If-Match', async () => {
      const made = await fhir('PUT Patient/e', patient('e'))
      assert.equal((await fhir('DELETE Patient/e', undefined, { 'if-match': 'W/"7"' })).status, 412)
      assert.equal((await fhir('GET Patient/e')).status, 200)
      const etag = String(made.headers.etag)
      assert.equal((await fhir('DELETE Patient/e', undefined, { 'if-match': etag })).status, 204)
      assert.equal((await fhir('DELETE Patient/absent')).status, 204)
    })
  })

  describe('conditional interactions', () => {
    const known = (value: string, more: object = {}) => ({
      resourceType: 'Patient',
      identifier: [{ system: 'urn:mrn', value }],
      ...more,
    })

    itConditional('creates a resource only if none matches', async () => {
      const header = { 'if-none-exist': 'identifier=urn:mrn|c1' }
      const made = await fhir('POST Patient', known('c1'), header)
      const again = await fhir('POST Patient', known('c1'), header)
      assert.deepEqual([made.status, again.status], [201, 200])
      assert.equal(again.headers.location, made.headers.location)
      await fhir('POST Patient', known('c1'))
      assert.equal((await fhir('POST Patient', known('c1'), header)).status, 412)
    })

    itConditional('updates the one match, or creates', async () => {
      const line = 'PUT Patient?identifier=urn:mrn|u1'
      const made = await fhir(line, known('u1'))
      const changed = await fhir(line, known('u1', { gender: 'male' }))
      assert.deepEqual([made.status, changed.status], [201, 200])
      assert.equal(changed.body.id, made.body.id)
      assert.equal((await fhir(line, known('u1', { id: 'other' }))).status, 400)
      const chosen = await fhir('PUT Patient?identifier=urn:mrn|u2', known('u2', { id: 'chosen' }))
      assert.deepEqual([chosen.status, chosen.body.id], [201, 'chosen'])
    })

    itConditional('patches and deletes the one match', async () => {
      const { body } = await fhir('POST Patient', known('d1'))
      const type = { 'content-type': 'application/json-patch+json' }
      const patch = [{ op: 'add', path: '/gender', value: 'male' }]
      assert.equal((await fhir('PATCH Patient?identifier=urn:mrn|d1', patch, type)).body.gender, 'male')
      assert.equal((await fhir('PATCH Patient?identifier=urn:mrn|none', patch, type)).status, 404)
      assert.equal((await fhir('DELETE Patient?identifier=urn:mrn|none')).status, 204)
      assert.equal((await fhir('DELETE Patient?identifier=urn:mrn|d1')).status, 204)
      assert.equal((await fhir(`GET Patient/${body.id}`)).status, 410)
      await fhir('POST Patient', known('d2'))
      await fhir('POST Patient', known('d2'))
      assert.equal((await fhir('DELETE Patient?identifier=urn:mrn|d2')).status, 412)
    })

    itRefuses('never ignores a parameter, even with handling=lenient (FHIR-4)', async () => {
      const reply = await fhir('DELETE Patient?nothing=1', undefined, { prefer: 'handling=lenient' })
      assert.equal(reply.status, 400)
      assert.equal((await fhir('DELETE Patient')).status, 400)
    })
  })

  describe('$validate', () => {
    const issuesOf = async (line: string, body?: object) => {
      const reply = await fhir(`POST ${line}`, body)
      const issues = reply.body.issue ?? []
      return [
        reply.status,
        ...issues.map(it => `${it.severity} ${it.code} ${it.expression?.[0] ?? ''}`.trim()),
      ]
    }
    const male = { resourceType: 'Patient', gender: 'male' }
    const parameters = (...parameter: object[]) => ({ resourceType: 'Parameters', parameter })
    const NO_NARRATIVE = 'warning invariant Patient'

    it('finds errors and recommendations (FHIR-17)', async () => {
      assert.deepEqual(await issuesOf('Patient/$validate', male), [
        200,
        'information informational',
        NO_NARRATIVE,
      ])
      assert.deepEqual(await issuesOf('Patient/$validate', { ...male, contact: [{ gender: 'male' }] }), [
        200,
        'error invariant Patient.contact[0]',
        NO_NARRATIVE,
      ])
    })

    it('reports a profile that it does not know (FHIR-17)', async () => {
      const own = 'http://hl7.org/fhir/StructureDefinition/Patient'
      const other = 'http://example.org/StructureDefinition/mine'
      assert.deepEqual(await issuesOf(`Patient/$validate?profile=${own}`, male), [
        200,
        'information informational',
        NO_NARRATIVE,
      ])
      const unknown = [200, NO_NARRATIVE, 'error not-supported Patient']
      assert.deepEqual(await issuesOf(`Patient/$validate?profile=${other}`, male), unknown)
      const posted = parameters({ name: 'profile', valueUri: other }, { name: 'resource', resource: male })
      assert.deepEqual(await issuesOf('Patient/$validate', posted), unknown)
      assert.deepEqual(await issuesOf('Patient/$validate', { ...male, meta: { profile: [other] } }), [
        200,
        'information informational',
        NO_NARRATIVE,
        'warning not-supported Patient.meta.profile',
      ])
    })

    it('needs no resource with mode=delete (FHIR-17)', async () => {
      const deletable = [200, 'information informational']
      assert.deepEqual(await issuesOf('Patient/bob/$validate?mode=delete'), deletable)
      assert.deepEqual(
        await issuesOf('Patient/bob/$validate', parameters({ name: 'mode', valueCode: 'delete' })),
        deletable,
      )
      assert.equal((await fhir('POST Patient/$validate?mode=nonsense', male)).status, 400)
    })

    it('validates Parameters (FHIR-17)', async () => {
      const valid = parameters({ name: 'x', valueString: 'y' })
      assert.deepEqual(await issuesOf('Parameters/$validate', valid), [200, 'information informational'])
      const wrapped = parameters({ name: 'resource', resource: valid })
      assert.deepEqual(await issuesOf('Parameters/$validate', wrapped), [200, 'information informational'])
      assert.deepEqual(await issuesOf('Parameters/$validate', parameters({ name: 'x' })), [
        200,
        'error invariant Parameters.parameter[0]',
      ])
    })
  })

  describe('decimals', () => {
    const DIGITS = ['7.00', '12345678901234567.89', '0.10', '0.0000001']
    const NOTATIONS = ['1e-400', '1.0e3', '-0.0']
    const observation = (value: string, more = '') =>
      `{"resourceType":"Observation","status":"final","code":{"text":"c"},"valueQuantity":{"value":${value},"unit":"g"}${more}}`
    const charge = (value: string) =>
      `{"resourceType":"ChargeItem","status":"billable","code":{"text":"c"},"subject":{"reference":"Patient/bob"},"factorOverride":${value}}`
    const shows = (text: string, value: string) => {
      const compact = text.replaceAll(/\s/g, '')
      assert.ok(compact.includes(`"value":${value},`) || compact.includes(`"factorOverride":${value}}`), text)
    }

    const keepsDigits = (numbers: readonly string[]) => async () => {
      for (const digits of numbers) {
        const made = await fhir('POST Observation', observation(digits))
        assert.equal(made.status, 201, made.text)
        shows(made.text, digits)
        const at = `Observation/${made.body.id}`
        shows((await fhir(`GET ${at}`)).text, digits)
        shows((await fhir(`GET ${at}?_elements=valueQuantity`)).text, digits)
        shows((await fhir(`GET ${at}?_summary=data`)).text, digits)
        shows((await fhir(`GET Observation?_id=${made.body.id}&_elements=valueQuantity`)).text, digits)
        shows((await fhir(`GET Observation?_id=${made.body.id}`)).text, digits)
        const other = `${digits.startsWith('-') ? '' : '-'}1.000`
        const put = await fhir(`PUT ${at}`, observation(other, `,"id":"${made.body.id}"`))
        shows(put.text, other)
        const history = (await fhir(`GET ${at}/_history`)).text
        shows(history, digits)
        shows(history, other)
        shows((await fhir(`GET ${at}/_history/${made.body.meta?.versionId}`)).text, digits)
      }
      shows((await fhir('POST ChargeItem', charge('1.10'))).text, '1.10')
    }
    needs(
      target,
      'decimals',
      'history',
    )('keep every digit through writes, reads, searches and history (FHIR-5)', keepsDigits(DIGITS))
    needs(
      target,
      'decimals',
      'exponents',
      'history',
    )('keep exponent and sign through writes, reads, searches and history', keepsDigits(NOTATIONS))

    needs(target, 'decimals')('keep every digit of the old content and of the patch', async () => {
      const { id } = (await fhir('POST Observation', observation('7.00'))).body
      const patch = (text: string) =>
        fhir(`PATCH Observation/${id}`, text, { 'content-type': 'application/json-patch+json' })
      const left = await patch('[{"op":"replace","path":"/status","value":"amended"}]')
      shows(left.text, '7.00')
      const brought = await patch(
        '[{"op":"test","path":"/valueQuantity/value","value":7.0},{"op":"replace","path":"/valueQuantity/value","value":0.10}]',
      )
      shows(brought.text, '0.10')
      const another = await patch('[{"op":"test","path":"/valueQuantity/value","value":0.100001}]')
      assert.equal(another.status, 422)
      const below = await patch('[{"op":"add","path":"/valueQuantity/value/x","value":1}]')
      assert.equal(below.status, 422)
    })

    needs(
      target,
      'decimals',
      'transactions',
    )('keep every digit in transactions and batches, including patches', async () => {
      const entry = (resource: string, request: string) => `{"resource":${resource},"request":${request}}`
      const post = '{"method":"POST","url":"Observation"}'
      const conditional = '{"method":"PUT","url":"Observation?identifier=urn:mrn|digits"}'
      const linked = observation(
        '2.50',
        ',"identifier":[{"system":"urn:mrn","value":"digits"}],"subject":{"reference":"urn:uuid:1"}',
      )
      for (const type of ['batch', 'transaction']) {
        const entries = [
          entry(observation('1.0'), post),
          entry(charge('1.10'), '{"method":"POST","url":"ChargeItem"}'),
        ]
        if (type === 'transaction')
          entries.push(
            entry(linked, conditional),
            `{"fullUrl":"urn:uuid:1",${entry('{"resourceType":"Patient"}', '{"method":"POST","url":"Patient"}').slice(1)}`,
          )
        const reply = await fhir('POST ', `{"resourceType":"Bundle","type":"${type}","entry":[${entries}]}`)
        assert.equal(reply.status, 200, reply.text)
        shows(reply.text, '1.0')
        shows(reply.text, '1.10')
        if (type === 'transaction') shows(reply.text, '2.50')
      }
      const found = await fhir('GET Observation?identifier=urn:mrn|digits')
      shows(found.text, '2.50')
      const data = Buffer.from('[{"op":"replace","path":"/valueQuantity/value","value":3.70}]').toString(
        'base64',
      )
      const binary = `{"resourceType":"Binary","contentType":"application/json-patch+json","data":"${data}"}`
      const url = `Observation/${found.body.entry?.[0]?.resource?.id}`
      const patched = entry(binary, `{"method":"PATCH","url":"${url}"}`)
      const reply = await fhir('POST ', `{"resourceType":"Bundle","type":"transaction","entry":[${patched}]}`)
      shows(reply.text, '3.70')
    })

    needs(target, 'quantities')('are searched by value', async () => {
      await fhir(
        'POST Observation',
        observation('5432.10', ',"identifier":[{"system":"urn:mrn","value":"by-value"}]'),
      )
      const ids = await fhir('GET Observation?value-quantity=5432.1&identifier=urn:mrn|by-value')
      assert.equal(ids.body.total, 1)
      const missing = await fhir('GET Observation?value-quantity:missing=true&identifier=urn:mrn|by-value')
      assert.equal(missing.body.total, 0)
    })

    needs(target, 'validation')('are refused if malformed', async () => {
      assert.equal((await fhir('POST Observation', observation('1e400'))).status, 422)
      assert.equal((await fhir('POST Observation', observation('"7.00"'))).status, 422)
      assert.equal((await fhir('POST Observation', observation('07.00'))).status, 400)
    })
  })
}

function testWritesWithin(target: TestTarget): void {
  const it = needs(target)
  let server: Fhir
  let fhir: Fhir
  let ann: Fhir
  before(async () => {
    server = await target.start({ guard })
    fhir = server.as('all')
    ann = server.as('ann')
    for (const it of [
      patient('ann'),
      patient('bob'),
      condition('ca', 'ann', { recordedDate: '2020' }),
      condition('cb', 'bob', { recordedDate: '2021' }),
      observation('oa', 'ann'),
    ])
      assert.ok((await fhir(`PUT ${it.resourceType}/${it.id}`, it)).status < 300)
  })
  after(() => server.close())

  describe('a write within a grant', () => {
    needs(target, 'locations')('returns the resource, its version and its URL', async () => {
      const { id: _, ...mine } = condition('x', 'ann')
      const made = await ann('POST Condition', mine)
      assert.equal(made.status, 201)
      const version = made.body.meta?.versionId
      assert.equal(made.headers.etag, `W/"${version}"`)
      assert.equal(made.headers.location, `${BASE}/Condition/${made.body.id}/_history/${version}`)
      const minimal = await ann('POST Condition', mine, { prefer: 'return=minimal' })
      assert.deepEqual([minimal.status, minimal.text], [201, ''])
      const withOutcome = await ann('POST Condition', mine, { prefer: 'return=OperationOutcome' })
      assert.equal(withOutcome.body.resourceType, 'OperationOutcome')
    })

    needs(target, 'decimals')(
      'keeps every digit of a decimal, also in elements that a patch does not change (FHIR-5)',
      async () => {
        const text = JSON.stringify(observation('deci', 'ann', { valueQuantity: { value: 1 } })).replace(
          '"value":1}',
          '"value":1.500}',
        )
        assert.ok((await ann('PUT Observation/deci', text)).status < 300)
        assert.match((await ann('GET Observation/deci')).text, /"value":\s*1\.500/)
        const patch = [{ op: 'add', path: '/note', value: [{ text: 'x' }] }]
        const patched = await ann('PATCH Observation/deci', patch, PATCH)
        assert.equal(patched.status, 200)
        assert.match(patched.text, /"value":\s*1\.500/)
      },
    )

    needs(target, 'numbered-versions')('is refused if the caller names another version', async () => {
      const v = (text: string) => condition('v', 'ann', { code: { text } })
      await fhir('PUT Condition/v', v('one'))
      const stale = await ann('PUT Condition/v', v('two'), { 'if-match': 'W/"7"' })
      assert.equal(readIssue(stale).slice(0, 12), '412 conflict')
      assert.equal((await ann('PUT Condition/v', v('two'), { 'if-match': 'W/"1"' })).status, 200)
      assert.equal((await ann('DELETE Condition/v', undefined, { 'if-match': 'W/"1"' })).status, 412)
      assert.equal((await ann('PATCH Condition/v', [], { ...PATCH, 'if-match': '"2"' })).status, 200)
      assert.equal((await ann('PUT Condition/v', v('three'), { 'if-none-match': '*' })).status, 412)
      assert.deepEqual((await ann('GET Condition/v')).body.code, { text: 'two' })
    })

    needs(target, 'validation')('checks the result of a patch', async () => {
      await fhir('PUT Condition/p', condition('p', 'ann'))
      const to = (reference: string) => [{ op: 'replace', path: '/subject/reference', value: reference }]
      assert.equal(readIssue(await ann('PATCH Condition/p', to('Patient/bob'), PATCH)), NOT_WITHIN)
      assert.equal((await ann('PATCH Condition/p', to('Patient/ann'), PATCH)).status, 200)
      assert.equal((await ann('PATCH Condition/p', [{ op: 'remove', path: '/subject' }], PATCH)).status, 422)
      assert.equal(
        (await ann('PATCH Condition/p', [{ op: 'replace', path: '/id', value: 'cb' }], PATCH)).status,
        400,
      )
      assert.equal((await ann('PATCH Condition/p', { not: 'a patch' }, PATCH)).status, 400)
    })

    needs(target, 'validation')('names the invalid element', async () => {
      const reply = await ann('POST Condition', {
        resourceType: 'Condition',
        subject: { reference: 'Patient/ann' },
        nonsense: 1,
      })
      assert.equal(reply.status, 422)
      assert.deepEqual(reply.body.issue?.[0]?.expression, ['Condition.nonsense'])
      assert.equal((await ann('POST Condition', patient('ann'))).status, 400)
      assert.equal((await ann('POST Condition', '{')).status, 400)
    })

    it('must not contain a conditional reference', async () => {
      const asserted = (reference: string) => {
        const { id: _, ...mine } = condition('x', 'ann', { evidence: [{ detail: [{ reference }] }] })
        return mine
      }
      const refused = await ann('POST Condition', asserted('Observation?code=x'))
      assert.match(readIssue(refused), /^403 forbidden: Cannot store Condition\.evidence\[0\]\.detail\[0\]: /)
      assert.equal((await ann('POST Condition', asserted('Observation/oa'))).status, 201)
    })

    needs(
      target,
      'conditional-writes',
      'history',
    )('with the same condition at the same time creates one resource, and updates it', async () => {
      const identifier = [{ system: 'urn:race', value: '1' }]
      const { id: _, ...mine } = condition('x', 'ann', { identifier })
      const replies = await Promise.all(
        Array.from({ length: 8 }, (_, at) =>
          fhir('PUT Condition?identifier=urn:race|1', { ...mine, note: [{ text: `${at}` }] }),
        ),
      )
      const found = await fhir('GET Condition?identifier=urn:race|1')
      assert.equal(found.body.total, 1, replies.map(it => it.status).join())
      const history = await fhir(`GET Condition/${readIds(found)[0]}/_history`)
      const acknowledged = replies.flatMap(it => (it.status < 300 ? [noteOf(it.body)] : []))
      const stored = (history.body.entry ?? []).map(it => noteOf(it.resource))
      assert.deepEqual(stored.toSorted(), acknowledged.toSorted())
    })

    needs(
      target,
      'conditional-writes',
      'deleted-versions',
    )('with a condition sees only resources within the grant', async () => {
      const { id: _, ...mine } = condition('x', 'ann', { recordedDate: '2022' })
      const once = await ann('POST Condition', mine, { 'if-none-exist': 'recorded-date=2022' })
      assert.equal(once.status, 201)
      const again = await ann('POST Condition', mine, { 'if-none-exist': 'recorded-date=2022' })
      assert.deepEqual([again.status, again.body.id], [200, once.body.id])
      const moved = await ann('PUT Condition?recorded-date=2022', { ...mine, code: { text: 'Other' } })
      assert.deepEqual([moved.status, moved.body.id], [200, once.body.id])
      assert.equal((await ann('PUT Condition?recorded-date=2022', condition('other', 'ann'))).status, 400)
      const patched = await ann(
        'PATCH Condition?recorded-date=2022',
        [{ op: 'remove', path: '/code' }],
        PATCH,
      )
      assert.deepEqual([patched.status, patched.body.code], [200, undefined])
      assert.equal((await ann('PATCH Condition?recorded-date=2021', [], PATCH)).status, 404)
      assert.equal((await ann('DELETE Condition?recorded-date=2022')).status, 204)
      assert.equal((await ann(`GET Condition/${once.body.id}`)).status, 410)
      await ann('POST Condition', condition('x', 'ann', { recordedDate: '2023' }))
      await ann('POST Condition', condition('x', 'ann', { recordedDate: '2023' }))
      assert.equal((await ann('DELETE Condition?recorded-date=2023')).status, 412)
    })
  })
}

function noteOf(body: Reply['body'] | undefined): string {
  return JSON.stringify(body?.note)
}

function toHttpDate(time: string | undefined): string {
  return new Date(time ?? '').toUTCString()
}
