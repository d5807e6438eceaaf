import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { limits } from '../../../fhir/index.ts'
import { type Access, fullAccess } from '../../../smart/index.ts'
import {
  BASE,
  condition,
  type Fhir,
  guardOf,
  issueOf,
  patient,
  patientAccess,
  type Reply,
  startFhir,
} from '../testing/fhir.ts'

let fhir: Fhir
let ann: Fhir
beforeEach(async () => {
  const server = await startFhir({ guard: guardOf({ all: fullAccess, ann: patientAccess('ann') }) })
  fhir = server.as('all')
  ann = server.as('ann')
  await fhir('PUT Patient/ann', patient('ann', { identifier: [{ system: 'urn:mrn', value: 'ann' }] }))
  await fhir('PUT Patient/bob', patient('bob', { identifier: [{ system: 'urn:mrn', value: 'bob' }] }))
})
afterEach(() => fhir.close())

interface Asked {
  readonly fullUrl?: string
  readonly resource?: unknown
  readonly ifMatch?: string
  readonly ifNoneExist?: string
}

/** An entry: `POST Patient`, and what else it has. */
function entry(line: string, { fullUrl, resource, ...conditions }: Asked = {}): object {
  const [method, url] = line.split(' ')
  return {
    ...(fullUrl && { fullUrl }),
    ...(resource !== undefined && { resource }),
    request: { method, url, ...conditions },
  }
}

function run(type: string, entries: readonly object[], as = fhir): Promise<Reply> {
  return as('POST ', { resourceType: 'Bundle', type, entry: entries })
}

function statuses(reply: Reply): readonly (string | undefined)[] {
  assert.equal(reply.status, 200, reply.text)
  return (reply.body.entry ?? []).map(it => it.response?.status.slice(0, 3))
}

const unnamed = (of: string) => ({ resourceType: 'Condition', subject: { reference: of } })
const howMany = async (what: string) => (await fhir(`GET ${what}?_summary=count`)).body.total

describe('batch', () => {
  it('answers each entry by itself', async () => {
    const reply = await run('batch', [
      entry('POST Condition', { resource: unnamed('Patient/ann') }),
      entry('GET Patient/none'),
      entry('GET Patient/ann'),
      entry('PUT Patient/ann', { resource: patient('ann'), ifMatch: 'W/"9"' }),
      entry('POST Condition', { resource: { resourceType: 'Condition' } }),
      entry('GET nothing'),
      entry('GET Condition?patient=ann'),
      entry(`GET ${BASE}/Patient/bob`),
      entry('GET http://other.test/fhir/Patient/bob'),
      entry('DELETE Patient/bob'),
    ])
    assert.deepEqual(statuses(reply), ['201', '404', '200', '412', '422', '404', '200', '200', '400', '204'])
    assert.equal(reply.body.type, 'batch-response')
    const [created, absent, read, , , , found] = reply.body.entry ?? []
    assert.match(created?.response?.location ?? '', /Condition\/[\w-]+\/_history\/1$/)
    assert.equal(created?.response?.etag, 'W/"1"')
    assert.equal(absent?.response?.outcome?.resourceType, 'OperationOutcome')
    assert.deepEqual([read?.resource?.id, read?.response?.etag], ['ann', 'W/"1"'])
    assert.equal(found?.resource?.total, 1)
  })

  it('judges each entry by the filter of the caller', async () => {
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
  })
})

describe('transaction', () => {
  it('links what it creates, whatever the order', async () => {
    const reply = await run('transaction', [
      entry('GET Condition?_count=5'),
      entry('POST Condition', { resource: unnamed('urn:uuid:p'), fullUrl: 'urn:uuid:c' }),
      entry('POST Patient', {
        fullUrl: 'urn:uuid:p',
        resource: {
          resourceType: 'Patient',
          identifier: [{ system: 'urn:ietf:rfc:3986', value: 'urn:uuid:p' }],
        },
      }),
      entry('DELETE Patient/bob'),
    ])
    assert.deepEqual(statuses(reply), ['200', '201', '201', '204'])
    assert.equal(reply.body.type, 'transaction-response')
    const [found, made, other] = reply.body.entry ?? []
    assert.deepEqual(made?.resource?.subject, { reference: `Patient/${other?.resource?.id}` })
    assert.deepEqual(other?.resource?.identifier, [{ system: 'urn:ietf:rfc:3986', value: 'urn:uuid:p' }])
    assert.equal(found?.resource?.total, 1, 'reads see what was written')
    assert.equal((await fhir('GET Patient/bob')).status, 410)
  })

  it('stores a patient of an organization before the Binaries and documents of the patient', async () => {
    const panel = { patients: new Set<string>(), organizations: ['north'], careTeams: [] }
    const lee: Access = { filterFor: () => [{ panel, exclusive: true }] }
    const server = await startFhir({ guard: guardOf({ lee }) })
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
    await server.close()
  })

  it('resolves conditions and conditional references first', async () => {
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

  it('patches by a Binary', async () => {
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

  it('writes nothing when one entry fails, and says which', async () => {
    const good = entry('PUT Condition/good', { resource: condition('good', 'ann') })
    const failures: Readonly<Record<string, readonly [number, object]>> = {
      invalid: [422, entry('POST Condition', { resource: { resourceType: 'Condition' } })],
      stale: [412, entry('PUT Patient/ann', { resource: patient('ann'), ifMatch: 'W/"8"' })],
      absent: [404, entry('GET Patient/none')],
      unresolved: [404, entry('POST Condition', { resource: unnamed('Patient?identifier=none') })],
      ambiguous: [412, entry('POST Condition', { resource: unnamed('Patient?identifier=urn:mrn|') })],
      unknown: [404, entry('POST Nothing', { resource: {} })],
      bodyless: [400, entry('POST Patient')],
      nested: [400, entry('POST /', { resource: { resourceType: 'Bundle', type: 'batch' } })],
    }
    for (const [name, [status, failing]] of Object.entries(failures)) {
      const reply = await run('transaction', [good, failing])
      assert.equal(reply.status, status, `${name} ${reply.text}`)
      assert.match(reply.body.issue?.[0]?.diagnostics ?? '', /^Bundle\.entry\[1\]: ./, name)
      assert.equal((await fhir('GET Condition/good')).status, 404, name)
    }
    assert.equal(await howMany('Patient'), 2)
  })

  it('is refused whole when one entry is out of reach', async () => {
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
    assert.equal(await howMany('Condition'), 0)
  })

  it('creates no Patient under a chosen id, to which stored data may refer already', async () => {
    const panel = { patients: new Set<string>(), organizations: ['north'], careTeams: [] }
    const lee: Access = { filterFor: () => [{ panel, exclusive: true }] }
    const server = await startFhir({ guard: guardOf({ lee }) })
    const managingOrganization = { reference: 'Organization/north' }
    const entries = [
      entry('PUT Patient/chosen', { resource: patient('chosen', { managingOrganization }) }),
      entry('PUT Condition/c', { resource: condition('c', 'chosen') }),
    ]
    assert.equal((await run('transaction', entries, server.as('lee'))).status, 403)
    await server.close()
  })

  it('reads what it writes, and fails whole where that could not be read', async () => {
    const put = entry('PUT Patient/ann', { resource: patient('ann', { gender: 'female' }) })
    const made = entry('PUT Patient/cem', { resource: patient('cem') })
    const reply = await run('transaction', [entry('GET Patient/ann'), put, made, entry('GET Patient/cem')])
    assert.deepEqual(statuses(reply), ['200', '200', '201', '200'])
    const [read, , , created] = reply.body.entry ?? []
    assert.deepEqual([read?.resource?.gender, created?.resource?.id], ['female', 'cem'])
    const gone = await run('transaction', [entry('DELETE Patient/ann'), entry('GET Patient/ann')])
    assert.equal(gone.status, 410)
    assert.equal((await fhir('GET Patient/ann')).status, 200)
    const writer: Access = { filterFor: (_type, permission) => (permission === 'r' ? [] : 'everything') }
    const blind = (await startFhir({ guard: guardOf({ blind: writer }) })).as('blind')
    assert.equal((await run('transaction', [made, entry('GET Patient/cem')], blind)).status, 403)
    assert.deepEqual(statuses(await run('transaction', [made], blind)), ['201'])
    await blind.close()
  })

  it('refuses two entries that write the same resource', async () => {
    const put = entry('PUT Patient/ann', { resource: patient('ann') })
    assert.equal(
      issueOf(await run('transaction', [put, entry('DELETE Patient/ann')])),
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
  it('with one condition make one resource, whether they come alone or in Bundles', async () => {
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
    assert.equal(await howMany('Patient'), 3)
  })

  it('are all made, one version after the other', async () => {
    const replies = await Promise.all(
      Array.from({ length: 30 }, () => fhir('PUT Patient/ann', patient('ann'))),
    )
    assert.ok(replies.every(it => it.status === 200))
    assert.equal(new Set(replies.map(it => it.headers.etag)).size, 30)
  })
})

describe('a Bundle at the base', () => {
  it('is a batch or a transaction with requests', async () => {
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
      assert.equal(issueOf(await fhir('POST ', body)), `400 structure: ${text}`)
    assert.deepEqual(statuses(await run('batch', [])), [])
    const minimal = await fhir(
      'POST ',
      { resourceType: 'Bundle', type: 'batch', entry: [entry('PUT Patient/m', { resource: patient('m') })] },
      { prefer: 'return=minimal' },
    )
    assert.equal(minimal.body.entry?.[0]?.resource, undefined)
  })
})

describe('what a Bundle may cost', () => {
  const large = (id: string, bytes: number) => ({
    resourceType: 'Binary',
    id,
    contentType: 'text/plain',
    data: 'QUJD'.repeat(bytes / 4),
  })
  const codings = (count: number) => ({
    resourceType: 'Condition',
    subject: { reference: 'Patient/ann' },
    code: { coding: Array.from({ length: count }, (_, at) => ({ system: 'urn:x', code: `c${at}` })) },
  })
  const issues = (reply: Reply) =>
    (reply.body.entry ?? []).map(it => it.response?.outcome?.issue?.[0]?.details.text)

  it('bounds the response: in a batch the rest is too costly, and writes are still reported', async () => {
    await fhir('PUT Binary/large', large('large', 1_000_000))
    const reply = await run('batch', [
      ...Array.from({ length: 12 }, () => entry('GET Binary/large')),
      entry('PUT Binary/other', { resource: large('other', 1_000_000) }),
    ])
    assert.deepEqual(statuses(reply), [...Array(4).fill('200'), ...Array(9).fill('400')])
    assert.match(
      issues(reply)[4] ?? '',
      /^Cannot process entry: the response to the Bundle would exceed 4194304 bytes$/,
    )
    assert.ok(reply.text.length < limits.BUNDLE_RESPONSE_BYTES + 100_000)
    assert.equal((await fhir('GET Binary/other')).status, 404)
  })

  it('reports a write whose content does not fit', async () => {
    await fhir('PUT Binary/large', large('large', 2_000_000))
    const reply = await run('batch', [
      entry('GET Binary/large'),
      entry('GET Binary/large'),
      entry('PUT Binary/other', { resource: large('other', 1_000_000) }),
      entry('GET Patient/ann'),
    ])
    assert.deepEqual(statuses(reply), ['200', '200', '201', '400'])
    assert.equal(reply.body.entry?.[2]?.resource, undefined)
    const writes = ['first', 'second', 'third'].map(id =>
      entry(`PUT Binary/${id}`, { resource: large(id, 1_500_000) }),
    )
    const transaction = await run('transaction', writes)
    assert.deepEqual(statuses(transaction), ['201', '201', '201'])
    assert.deepEqual(
      transaction.body.entry?.map(it => it.resource?.id),
      ['first', 'second', undefined],
    )
  })

  it('fails a transaction whole whose response would be too large', async () => {
    await fhir('PUT Binary/large', large('large', 3_000_000))
    const reply = await run('transaction', [
      entry('POST Patient', { resource: { resourceType: 'Patient' } }),
      ...Array.from({ length: 3 }, () => entry('GET Binary/large')),
    ])
    assert.match(issueOf(reply), /^400 too-costly: .* exceed 4194304 bytes$/)
    assert.equal(await howMany('Patient'), 2)
  })

  it('bounds the characters of its JSON Patches', async () => {
    const data = Buffer.from(`[${' '.repeat(limits.BUNDLE_PATCH_CHARACTERS * 0.75)}]`).toString('base64')
    const resource = { resourceType: 'Binary', contentType: 'application/json-patch+json', data }
    const patch = { request: { method: 'PATCH', url: 'Patient/1' }, resource }
    for (const type of ['batch', 'transaction'])
      assert.equal(
        issueOf(await fhir('POST ', { resourceType: 'Bundle', type, entry: [patch] })),
        '400 too-costly: Cannot process Bundle: its JSON Patches have more than 1048576 characters of base64',
      )
  })

  it('counts a long search value as several', async () => {
    const name = Array.from({ length: 700 }, (_, at) => ({ text: `${at}`.padEnd(1_000, 'x') }))
    assert.match(
      issueOf(await fhir('POST Patient', { resourceType: 'Patient', name })),
      /^400 too-costly: Cannot store resource: it has more than 10000 search values$/,
    )
  })

  it('bounds the search values of a resource and of a transaction', async () => {
    assert.match(
      issueOf(await fhir('POST Condition', codings(limits.INDEX_ROWS))),
      /^400 too-costly: Cannot store resource: it has more than 10000 search values$/,
    )
    const reply = await run('transaction', [
      entry('POST Condition', { resource: codings(7_000) }),
      entry('POST Condition', { resource: codings(6_000) }),
    ])
    assert.match(
      issueOf(reply),
      /^400 too-costly: Cannot process transaction: it writes more than 10000 search values$/,
    )
    assert.equal(await howMany('Condition'), 0)
    assert.equal((await fhir('POST Condition', codings(7_000))).status, 201)
  })

  it('bounds the searches of a transaction', async () => {
    // So that a search takes some work on any machine.
    const resource = { resourceType: 'Patient', name: [{ family: 'y'.repeat(500) }] }
    const many = Array.from({ length: 250 }, () => entry('POST Patient', { resource }))
    for (let times = 0; times < 2; times++) assert.equal((await run('transaction', many)).status, 200)
    const reply = await run(
      'transaction',
      Array.from({ length: limits.TRANSACTION_ENTRIES }, () =>
        entry('GET Patient?name:contains=x&_total=accurate'),
      ),
    )
    assert.match(issueOf(reply), /^400 too-costly: .* its searches and reads take more than 50 ms of work$/)
  })

  it('lets others have their turn between the entries of a batch', async () => {
    const ended: string[] = []
    const batch = run(
      'batch',
      Array.from({ length: 1_000 }, () => entry('GET Patient?_total=accurate&_sort=name,birthdate')),
    ).then(() => ended.push('batch'))
    await fhir('GET Patient/ann').then(() => ended.push('read'))
    await batch
    assert.deepEqual(ended, ['read', 'batch'])
  })

  it('stops when the client has closed the connection', async () => {
    const address = await fhir.app.listen({ port: 0, host: '127.0.0.1' })
    const made = () => entry('POST Condition', { resource: unnamed('Patient/ann') })
    const batch = { resourceType: 'Bundle', type: 'batch', entry: Array.from({ length: 2_000 }, made) }
    const request = httpRequest(`${address}/fhir`, {
      method: 'POST',
      headers: { authorization: 'Bearer all', 'content-type': 'application/fhir+json' },
    }).on('error', () => {})
    request.end(JSON.stringify(batch))
    while ((await howMany('Condition')) === 0) await setImmediate()
    request.destroy()
    let [before, now] = [-1, await howMany('Condition')]
    while (now !== before) {
      for (let turn = 0; turn < 20; turn++) await setImmediate()
      ;[before, now] = [now ?? 0, await howMany('Condition')]
    }
    assert.ok(Number(now) > 0 && Number(now) < 2_000, `${now} were made`)
  })
})
