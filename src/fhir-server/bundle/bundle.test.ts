import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { fullAccess } from '../../consent/index.ts'
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

  it('judges each entry by the reach of the caller', async () => {
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
      assert.equal(reply.body.issue?.[0]?.diagnostics, 'Bundle.entry[1]', name)
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
