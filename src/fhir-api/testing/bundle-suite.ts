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
  patientAccess,
  type Reply,
  readIssue,
} from '../../backends/sqlite/testing/fhir.ts'
import { type Access, fullAccess } from '../../smart/index.ts'
import { needs, type TestTarget } from './target.ts'
import { exclusive, most } from './write-suite.ts'

const blind: Access = { filterFor: (_type, permission) => (permission === 'r' ? [] : 'everything') }
const panel = { patients: new Set<string>(), organizations: ['north'], careTeams: [] }
const lee: Access = { filterFor: () => [{ panel, exclusive: true }] }
const mrn = (value: string) => [{ system: 'urn:mrn', value }]

interface Asked {
  readonly fullUrl?: string
  readonly resource?: unknown
  readonly ifMatch?: string
  readonly ifNoneExist?: string
}

/** Builds an entry from `POST Patient` and further members. */
function entry(line: string, { fullUrl, resource, ...conditions }: Asked = {}): object {
  const [method, url] = line.split(' ')
  return {
    ...(fullUrl && { fullUrl }),
    ...(resource !== undefined && { resource }),
    request: { method, url, ...conditions },
  }
}

function statuses(reply: Reply): readonly (string | undefined)[] {
  assert.equal(reply.status, 200, reply.text)
  return (reply.body.entry ?? []).map(it => it.response?.status.slice(0, 3))
}

const unnamed = (of: string) => ({ resourceType: 'Condition', subject: { reference: of } })
/** Batches and transactions. */
export function testBundles(target: TestTarget): void {
  const it = needs(target)
  const itTransaction = needs(target, 'transactions')
  let server: Fhir
  let fhir: Fhir
  let ann: Fhir
  let own: Fhir
  before(async () => {
    const guard = createAuthenticator({
      all: fullAccess,
      most,
      ann: patientAccess('ann'),
      own: exclusive,
      blind,
      lee,
    })
    server = await target.start({ guard })
    // The gateway may pass on a Bundle of an unlimited caller without checking it.
    fhir = server.as('most')
    ann = server.as('ann')
    own = server.as('own')
    for (const it of [
      { resourceType: 'Organization', id: 'north', name: 'North' },
      patient('ann', { identifier: mrn('ann') }),
      patient('bob', { identifier: mrn('bob') }),
      patient('cat'),
      condition('ca', 'ann', { recordedDate: '2020' }),
      condition('cb', 'bob', { recordedDate: '2021' }),
    ])
      assert.ok((await fhir(`PUT ${it.resourceType}/${it.id}`, it)).status < 300)
  })
  after(() => server.close())

  function run(type: string, entries: readonly object[], as = fhir): Promise<Reply> {
    return as('POST ', { resourceType: 'Bundle', type, entry: entries })
  }
  const howMany = async (what: string) => (await fhir(`GET ${what}?_summary=count`)).body.total

  describe('batch', () => {
    needs(target, 'locations')('has a response for each entry (BUNDLE-2)', async () => {
      await fhir('PUT Patient/leaving', patient('leaving'))
      const reply = await run('batch', [
        entry('POST Condition', { resource: unnamed('Patient/cat') }),
        entry('GET Patient/none'),
        entry('GET Patient/ann'),
        entry('PUT Patient/ann', { resource: patient('ann', { identifier: mrn('ann') }), ifMatch: 'W/"9"' }),
        entry('GET nothing'),
        entry('GET Condition?patient=cat'),
        entry(`GET ${BASE}/Patient/bob`),
        entry('GET http://other.test/fhir/Patient/bob'),
        entry('DELETE Patient/leaving'),
      ])
      assert.deepEqual(statuses(reply), ['201', '404', '200', '412', '404', '200', '200', '400', '204'])
      assert.equal(reply.body.type, 'batch-response')
      const [created, absent, read, , , found] = reply.body.entry ?? []
      const version = created?.resource?.meta?.versionId
      assert.match(created?.response?.location ?? '', new RegExp(`Condition/[\\w-]+/_history/${version}$`))
      assert.equal(created?.response?.etag, `W/"${version}"`)
      assert.equal(absent?.response?.outcome?.resourceType, 'OperationOutcome')
      const { headers } = await fhir('GET Patient/ann')
      assert.deepEqual([read?.resource?.id, read?.response?.etag], ['ann', headers.etag])
      assert.equal(found?.resource?.total, 1)
    })

    needs(target, 'update-as-create')(
      'checks each entry against the access filter of the caller',
      async () => {
        const reply = await run(
          'batch',
          [
            entry('GET Patient/ann'),
            entry('GET Patient/bob'),
            entry('PUT Condition/x', { resource: condition('x', 'bob') }),
            entry('PUT Condition/y', { resource: condition('y', 'ann') }),
            entry('DELETE Patient/bob'),
            entry('GET Patient'),
          ],
          ann,
        )
        assert.deepEqual(statuses(reply), ['200', '403', '403', '201', '403', '200'])
        assert.equal(reply.body.entry?.[5]?.resource?.total, 1)
      },
    )
  })

  describe('transaction', () => {
    itTransaction('resolves references between new resources, in any order (BUNDLE-4)', async () => {
      await fhir('PUT Patient/leaving', patient('leaving', { gender: 'male' }))
      const reply = await run('transaction', [
        entry('GET Condition?identifier=urn:mrn|linked'),
        entry('POST Condition', {
          resource: { ...unnamed('urn:uuid:p'), identifier: [{ system: 'urn:mrn', value: 'linked' }] },
          fullUrl: 'urn:uuid:c',
        }),
        entry('POST Patient', {
          fullUrl: 'urn:uuid:p',
          resource: {
            resourceType: 'Patient',
            identifier: [{ system: 'urn:ietf:rfc:3986', value: 'urn:uuid:p' }],
          },
        }),
        entry('DELETE Patient/leaving'),
      ])
      assert.deepEqual(statuses(reply), ['200', '201', '201', '204'])
      assert.equal(reply.body.type, 'transaction-response')
      const [found, made, other] = reply.body.entry ?? []
      assert.deepEqual(made?.resource?.subject, { reference: `Patient/${other?.resource?.id}` })
      assert.deepEqual(other?.resource?.identifier, [{ system: 'urn:ietf:rfc:3986', value: 'urn:uuid:p' }])
      assert.equal(found?.resource?.total, 1, 'reads see what was written')
      assert.equal((await fhir('GET Patient/leaving')).status, 410)
    })

    itTransaction(
      'stores a patient of an organization before the Binaries and documents of the patient',
      async () => {
        const reference = 'urn:uuid:p'
        const document = { resourceType: 'DocumentReference', status: 'current', subject: { reference } }
        const entries = [
          entry('POST Patient', {
            fullUrl: reference,
            resource: { resourceType: 'Patient', managingOrganization: { reference: 'Organization/north' } },
          }),
          entry('POST DocumentReference', {
            resource: { ...document, content: [{ attachment: { url: 'urn:uuid:b' } }] },
          }),
          entry('POST Binary', {
            fullUrl: 'urn:uuid:b',
            resource: { resourceType: 'Binary', contentType: 'text/plain', securityContext: { reference } },
          }),
        ]
        assert.deepEqual(statuses(await run('transaction', entries, server.as('lee'))), ['201', '201', '201'])
      },
    )

    itTransaction('resolves conditions and conditional references first', async () => {
      const entries = [
        entry('POST Patient', {
          fullUrl: 'urn:uuid:p',
          resource: { resourceType: 'Patient' },
          ifNoneExist: 'identifier=urn:mrn|ann',
        }),
        entry('POST Condition', { resource: unnamed('urn:uuid:p') }),
        entry('POST Condition', { resource: unnamed('Patient?identifier=urn:mrn|bob') }),
        entry('PUT Group?identifier=urn:g|1', {
          fullUrl: 'urn:uuid:g',
          resource: {
            resourceType: 'Group',
            type: 'person',
            actual: true,
            identifier: [{ system: 'urn:g', value: '1' }],
          },
        }),
        entry('DELETE Patient?identifier=urn:mrn|none'),
      ]
      const reply = await run('transaction', entries)
      assert.deepEqual(statuses(reply), ['200', '201', '201', '201', '204'])
      const subjects = reply.body.entry?.map(it => it.resource?.subject)
      assert.deepEqual(subjects?.slice(1, 3), [{ reference: 'Patient/ann' }, { reference: 'Patient/bob' }])
      assert.deepEqual(statuses(await run('transaction', entries.slice(3, 4))), ['200'])
    })

    itTransaction('accepts a patch in a Binary', async () => {
      const data = Buffer.from('[{"op":"add","path":"/gender","value":"male"}]').toString('base64')
      const resource = { resourceType: 'Binary', contentType: 'application/json-patch+json', data }
      const reply = await run('transaction', [entry('PATCH Patient/ann', { resource })])
      assert.equal(reply.body.entry?.[0]?.resource?.gender, 'male')
      assert.equal(
        (await run('transaction', [entry('PATCH Patient/ann', { resource: { ...resource, data: '?' } })]))
          .status,
        400,
      )
    })

    itTransaction('writes nothing if an entry fails, and names the entry (BUNDLE-3)', async () => {
      const good = entry('PUT Condition/good', { resource: condition('good', 'ann') })
      const failures: Readonly<Record<string, readonly [number, object]>> = {
        stale: [
          412,
          entry('PUT Patient/ann', {
            resource: patient('ann', { identifier: mrn('ann') }),
            ifMatch: 'W/"8"',
          }),
        ],
        absent: [404, entry('GET Patient/none')],
        unresolved: [404, entry('POST Condition', { resource: unnamed('Patient?identifier=none') })],
        ambiguous: [412, entry('POST Condition', { resource: unnamed('Patient?identifier=urn:mrn|') })],
        unknown: [404, entry('POST Nothing', { resource: {} })],
        bodyless: [400, entry('POST Patient')],
        nested: [400, entry('POST /', { resource: { resourceType: 'Bundle', type: 'batch' } })],
      }
      const before = await howMany('Patient')
      for (const [name, [status, failing]] of Object.entries(failures)) {
        const reply = await run('transaction', [good, failing])
        assert.equal(reply.status, status, `${name} ${reply.text}`)
        assert.match(reply.body.issue?.[0]?.diagnostics ?? '', /^Bundle\.entry\[1\]: ./, name)
        assert.equal((await fhir('GET Condition/good')).status, 404, name)
      }
      assert.equal(await howMany('Patient'), before)
    })

    needs(
      target,
      'transactions',
      'validation',
    )('names the entry whose content is invalid', async () => {
      const good = entry('PUT Condition/good', { resource: condition('good', 'ann') })
      const invalid = entry('POST Condition', { resource: { resourceType: 'Condition' } })
      assert.deepEqual(statuses(await run('batch', [invalid])), ['422'])
      const reply = await run('transaction', [good, invalid])
      assert.equal(reply.status, 422)
      assert.match(reply.body.issue?.[0]?.diagnostics ?? '', /^Bundle\.entry\[1\]: ./)
      assert.equal((await fhir('GET Condition/good')).status, 404)
    })

    itTransaction('is refused if one entry is outside the grant (BUNDLE-3)', async () => {
      const before = await howMany('Condition')
      const reply = await run(
        'transaction',
        [
          entry('PUT Condition/y', { resource: condition('y', 'ann') }),
          entry('POST Patient', { resource: { resourceType: 'Patient' }, fullUrl: 'urn:uuid:p' }),
        ],
        ann,
      )
      assert.equal(reply.status, 403)
      const moved = await run(
        'transaction',
        [entry('POST Condition', { resource: unnamed('Patient?identifier=urn:mrn|bob') })],
        ann,
      )
      assert.equal(moved.status, 404, 'a patient outside is not found by a conditional reference')
      assert.equal(await howMany('Condition'), before)
    })

    itTransaction(
      'creates no Patient under an id of the client, which stored resources may already name',
      async () => {
        const managingOrganization = { reference: 'Organization/north' }
        const entries = [
          entry('PUT Patient/chosen', { resource: patient('chosen', { managingOrganization }) }),
          entry('PUT Condition/c', { resource: condition('c', 'chosen') }),
        ]
        assert.equal((await run('transaction', entries, server.as('lee'))).status, 403)
      },
    )

    itTransaction(
      'reads the resources that it writes, and fails if the caller may not read them (BUNDLE-3)',
      async () => {
        const put = entry('PUT Patient/ann', {
          resource: patient('ann', { gender: 'female', identifier: mrn('ann') }),
        })
        const made = entry('PUT Patient/cem', { resource: patient('cem') })
        const reply = await run('transaction', [
          entry('GET Patient/ann'),
          put,
          made,
          entry('GET Patient/cem'),
        ])
        assert.deepEqual(statuses(reply), ['200', '200', '201', '200'])
        const [read, , , created] = reply.body.entry ?? []
        assert.deepEqual([read?.resource?.gender, created?.resource?.id], ['female', 'cem'])
        const gone = await run('transaction', [entry('DELETE Patient/cem'), entry('GET Patient/cem')])
        assert.equal(gone.status, 410)
        assert.equal((await fhir('GET Patient/cem')).status, 200)
        const blind = server.as('blind')
        const unread = entry('PUT Patient/dan', { resource: patient('dan') })
        assert.equal((await run('transaction', [unread, entry('GET Patient/dan')], blind)).status, 403)
        assert.deepEqual(statuses(await run('transaction', [unread], blind)), ['201'])
      },
    )

    itTransaction('refuses two entries that write the same resource', async () => {
      const put = entry('PUT Patient/ann', { resource: patient('ann', { identifier: mrn('ann') }) })
      assert.equal(
        readIssue(await run('transaction', [put, entry('DELETE Patient/ann')])),
        '400 structure: Cannot process transaction: two entries write the same resource',
      )
      const once = entry('POST Patient', {
        resource: { resourceType: 'Patient' },
        ifNoneExist: 'identifier=new',
      })
      assert.equal((await run('transaction', [once, once])).status, 400)
    })
  })

  describe('writes at the same time', () => {
    needs(
      target,
      'conditional-writes',
      'transactions',
    )('with the same condition create one resource, alone or in Bundles', async () => {
      const resource = { resourceType: 'Patient', identifier: [{ system: 'urn:mrn', value: 'new' }] }
      const once = entry('POST Patient', { resource, ifNoneExist: 'identifier=urn:mrn|new' })
      const replies = await Promise.all(
        Array.from({ length: 30 }, (_, at) =>
          at % 3 === 0
            ? fhir('POST Patient', resource, { 'if-none-exist': 'identifier=urn:mrn|new' })
            : run(at % 3 === 1 ? 'batch' : 'transaction', [once]),
        ),
      )
      const made = replies.map(it =>
        it.body.entry ? it.body.entry[0]?.response?.status.slice(0, 3) : `${it.status}`,
      )
      assert.deepEqual(made.toSorted(), [...Array(29).fill('200'), '201'])
      assert.equal((await fhir('GET Patient?identifier=urn:mrn|new')).body.total, 1)
    })

    it('each get a version of their own', async () => {
      const replies = await Promise.all(
        Array.from({ length: 30 }, (_, at) =>
          fhir('PUT Patient/bob', patient('bob', { name: [{ text: `${at}` }], identifier: mrn('bob') })),
        ),
      )
      const made = replies.filter(it => it.status === 200)
      assert.ok(made.length > 0)
      assert.equal(new Set(made.map(it => it.headers.etag)).size, made.length)
      assert.deepEqual(
        replies.filter(it => ![200, 409, 412].includes(it.status)).map(it => it.text),
        [],
      )
    })
  })

  describe('a Bundle at the base', () => {
    it('must be a batch or a transaction with requests', async () => {
      for (const [body, text] of [
        [patient('x'), 'Cannot read body: expected a Bundle'],
        [
          { resourceType: 'Bundle', type: 'document' },
          'Cannot process Bundle: expected one of type batch or transaction',
        ],
        [
          { resourceType: 'Bundle', type: 'batch', entry: {} },
          'Cannot process Bundle: its entry is not a list',
        ],
        [{ resourceType: 'Bundle', type: 'batch', entry: [{}] }, 'Cannot process entry: it has no request'],
        [{ resourceType: 'Bundle', type: 'batch', entry: [null] }, 'Cannot process entry: it has no request'],
        [
          { resourceType: 'Bundle', type: 'batch', entry: [{ request: { method: 1 } }] },
          'Cannot process entry: its request has no method or url',
        ],
      ] as const)
        assert.equal(readIssue(await fhir('POST ', body)), `400 structure: ${text}`)
      assert.deepEqual(statuses(await run('batch', [])), [])
    })

    needs(target, 'same-responses')('honours Prefer', async () => {
      const minimal = await server.as('all')(
        'POST ',
        {
          resourceType: 'Bundle',
          type: 'batch',
          entry: [entry('PUT Patient/m', { resource: patient('m') })],
        },
        { prefer: 'return=minimal' },
      )
      assert.equal(minimal.body.entry?.[0]?.resource, undefined)
    })
  })

  describe('writes of a limited caller', () => {
    describe('in a batch', () => {
      it('are performed one by one, each within the grant', async () => {
        const entry = [
          { request: { method: 'GET', url: 'Condition/ca' } },
          { request: { method: 'GET', url: 'Condition/cb' } },
          { request: { method: 'POST', url: 'Condition' }, resource: condition('x', 'bob') },
          { request: { method: 'POST', url: 'Condition' }, resource: condition('x', 'ann') },
          { request: { method: 'DELETE', url: 'Condition/cb' } },
          { request: { method: 'GET', url: 'Condition?_summary=count&recorded-date=2021' } },
          { request: { method: 'GET', url: 'Patient/../Condition/cb' } },
          { request: { method: 'GET', url: 'AuditEvent' } },
        ]
        const reply = await own('POST ', { resourceType: 'Bundle', type: 'batch', entry })
        assert.equal(reply.status, 200, reply.text)
        assert.deepEqual(reply.body.entry?.map(it => it.response?.status.slice(0, 3)).slice(0, 7), [
          '200',
          '403',
          '403',
          '201',
          '403',
          '200',
          '400',
        ])
        assert.equal(reply.body.entry?.[5]?.resource?.total, 0)
        assert.doesNotMatch(reply.text, /Patient\/bob|127\.0\.0\.1/)
        assert.equal((await fhir('GET Condition/cb')).status, 200)
      })
    })

    describe('in a transaction', () => {
      const transaction = (...entry: readonly object[]) => ({
        resourceType: 'Bundle',
        type: 'transaction',
        entry,
      })
      const post = (resource: object, more: object = {}) => ({
        ...more,
        resource,
        request: { method: 'POST', url: (resource as { resourceType: string }).resourceType },
      })
      const count = async () => (await fhir('GET Condition?_summary=count')).body.total

      itTransaction('are all performed, with references between them resolved', async () => {
        const fullUrl = 'urn:uuid:00000000-0000-4000-8000-000000000001'
        const reply = await own(
          'POST ',
          transaction(
            post(observation('x', 'ann'), { fullUrl }),
            post(observation('y', 'ann', { hasMember: [{ reference: fullUrl }] })),
            { resource: condition('t', 'ann'), request: { method: 'PUT', url: 'Condition/t' } },
            { request: { method: 'GET', url: 'Condition/ca' } },
          ),
        )
        assert.equal(reply.status, 200, reply.text)
        const [first, second, third, read] = reply.body.entry ?? []
        assert.deepEqual(
          [first, second, third, read].map(it => it?.response?.status.slice(0, 3)),
          ['201', '201', '201', '200'],
        )
        const made = first?.response?.location?.replace(/^.*\/(Observation\/[^/]+)\/.*$/, '$1')
        assert.deepEqual(second?.resource?.hasMember, [{ reference: made }])
        assert.match(String(first?.response?.location), /^http:\/\/fhir\.test\/fhir\/Observation\//)
      })

      itTransaction('change nothing if one of them is refused (BUNDLE-3)', async () => {
        const before = await count()
        const mine = post(condition('x', 'ann'))
        for (const other of [
          post(condition('x', 'bob')),
          { resource: condition('cb', 'ann'), request: { method: 'PUT', url: 'Condition/cb' } },
          { request: { method: 'DELETE', url: 'Condition/cb' } },
          { request: { method: 'GET', url: 'Condition/cb' } },
          { request: { method: 'GET', url: 'Condition/none' } },
          // A newly created Patient is not the patient of the grant.
          post(observation('x', 'ann', { subject: { reference: 'urn:uuid:1' } })),
        ]) {
          const reply = await own(
            'POST ',
            transaction(mine, other, post(patient('new'), { fullUrl: 'urn:uuid:1' })),
          )
          assert.equal(readIssue(reply), NOT_WITHIN, JSON.stringify(other))
          assert.deepEqual(reply.body.issue?.[0]?.expression, ['Bundle.entry[1]'])
        }
        assert.equal(await count(), before)
      })

      itTransaction('resolve conditional references within the grant only', async () => {
        const about = (reference: string) => post(observation('x', 'ann', { focus: [{ reference }] }))
        const unmatched = await own('POST ', transaction(about('Condition?recorded-date=2021')))
        assert.equal(unmatched.status, 404, unmatched.text)
        const found = await own('POST ', transaction(about('Condition?_id=ca')))
        assert.deepEqual(found.body.entry?.[0]?.resource?.focus, [{ reference: 'Condition/ca' }])
      })

      itTransaction(
        'resolve a conditional reference to a shared type, in an element of the compartment too (WRITE-9)',
        async () => {
          const identifier = [{ system: 'urn:npi', value: '7' }]
          assert.ok(
            (await fhir('PUT Practitioner/seven', { resourceType: 'Practitioner', id: 'seven', identifier }))
              .status < 300,
          )
          const by = (reference: string) =>
            transaction(post(observation('x', 'ann', { performer: [{ reference }] })))
          const found = await ann('POST ', by('Practitioner?identifier=urn:npi|7'))
          assert.equal(found.status, 200, found.text)
          assert.deepEqual(found.body.entry?.[0]?.resource?.performer, [{ reference: 'Practitioner/seven' }])
          const none = await ann('POST ', by('Practitioner?identifier=urn:npi|8'))
          assert.equal(
            readIssue(none),
            '404 not-found: Cannot resolve Observation.performer[0]: no Practitioner matches its search parameters',
          )
        },
      )

      itTransaction('are refused if two of them write one resource', async () => {
        const twice = { resource: condition('t', 'ann'), request: { method: 'PUT', url: 'Condition/t' } }
        assert.equal((await own('POST ', transaction(twice, twice))).status, 400)
      })

      itTransaction('have their conditions resolved first', async () => {
        const existing = (await own('POST Condition', condition('x', 'ann', { recordedDate: '1999' }))).body
          .id
        const reply = await own(
          'POST ',
          transaction(
            {
              fullUrl: 'urn:uuid:2',
              resource: condition('x', 'ann', { recordedDate: '1999' }),
              request: { method: 'POST', url: 'Condition', ifNoneExist: 'recorded-date=1999' },
            },
            post(observation('z', 'ann', { focus: [{ reference: 'urn:uuid:2' }] })),
            { request: { method: 'DELETE', url: 'Condition?recorded-date=1901' } },
            {
              resource: {
                resourceType: 'Binary',
                contentType: 'application/json-patch+json',
                data: btoa(JSON.stringify([{ op: 'remove', path: '/code' }])),
              },
              request: { method: 'PATCH', url: 'Condition/ca' },
            },
          ),
        )
        assert.equal(reply.status, 200, reply.text)
        assert.deepEqual(
          reply.body.entry?.map(it => it.response?.status.slice(0, 3)),
          ['200', '201', '204', '200'],
        )
        assert.deepEqual(reply.body.entry?.[1]?.resource?.focus, [{ reference: `Condition/${existing}` }])
        assert.equal((await fhir('GET Condition/ca')).body.code, undefined)
      })

      itTransaction('are sent as one transaction for an unlimited caller', async () => {
        const reply = await server.as('all')(
          'POST ',
          transaction(post(condition('x', 'bob')), post(condition('x', 'ann'))),
        )
        assert.deepEqual(
          [reply.status, reply.body.type, reply.body.entry?.length],
          [200, 'transaction-response', 2],
        )
        assert.doesNotMatch(reply.text, /127\.0\.0\.1/)
      })
    })
  })
}
