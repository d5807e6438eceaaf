import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { limits } from '../../../fhir/index.ts'
import { fullAccess } from '../../../smart/index.ts'
import { createAuthenticator, type Fhir, patient, type Reply, readIssue, startFhir } from '../testing/fhir.ts'

let fhir: Fhir
beforeEach(async () => {
  const server = await startFhir({ guard: createAuthenticator({ all: fullAccess }) })
  fhir = server.as('all')
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

/** Creates an entry from a line such as `POST Patient` and further elements. */
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

describe('the limits of a Bundle', () => {
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

  it('limit the response: the remaining entries of a batch are too-costly, and writes are still reported (BUNDLE-6)', async () => {
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

  it('report a write whose content does not fit', async () => {
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

  it('refuse a whole transaction whose response would be too large (BUNDLE-6)', async () => {
    await fhir('PUT Binary/large', large('large', 3_000_000))
    const reply = await run('transaction', [
      entry('POST Patient', { resource: { resourceType: 'Patient' } }),
      ...Array.from({ length: 3 }, () => entry('GET Binary/large')),
    ])
    assert.match(readIssue(reply), /^400 too-costly: .* exceed 4194304 bytes$/)
    assert.equal(await howMany('Patient'), 2)
  })

  it('include the characters of its JSON Patches', async () => {
    const data = Buffer.from(`[${' '.repeat(limits.BUNDLE_PATCH_CHARACTERS * 0.75)}]`).toString('base64')
    const resource = { resourceType: 'Binary', contentType: 'application/json-patch+json', data }
    const patch = { request: { method: 'PATCH', url: 'Patient/1' }, resource }
    for (const type of ['batch', 'transaction'])
      assert.equal(
        readIssue(await fhir('POST ', { resourceType: 'Bundle', type, entry: [patch] })),
        '400 too-costly: Cannot process Bundle: its JSON Patches have more than 1048576 characters of base64',
      )
  })

  it('count a long search value as several', async () => {
    const name = Array.from({ length: 700 }, (_, at) => ({ text: `${at}`.padEnd(1_000, 'x') }))
    assert.match(
      readIssue(await fhir('POST Patient', { resourceType: 'Patient', name })),
      /^400 too-costly: Cannot store resource: it has more than 10000 search values$/,
    )
  })

  it('include the search values of a resource and of a transaction', async () => {
    assert.match(
      readIssue(await fhir('POST Condition', codings(limits.INDEX_ROWS))),
      /^400 too-costly: Cannot store resource: it has more than 10000 search values$/,
    )
    const reply = await run('transaction', [
      entry('POST Condition', { resource: codings(7_000) }),
      entry('POST Condition', { resource: codings(6_000) }),
    ])
    assert.match(
      readIssue(reply),
      /^400 too-costly: Cannot process transaction: it writes more than 10000 search values$/,
    )
    assert.equal(await howMany('Condition'), 0)
    assert.equal((await fhir('POST Condition', codings(7_000))).status, 201)
  })

  it('include the searches of a transaction', async () => {
    // Enough data for a measurable search on any machine.
    const resource = { resourceType: 'Patient', name: [{ family: 'y'.repeat(500) }] }
    const many = Array.from({ length: 250 }, () => entry('POST Patient', { resource }))
    for (let times = 0; times < 2; times++) assert.equal((await run('transaction', many)).status, 200)
    const reply = await run(
      'transaction',
      Array.from({ length: limits.TRANSACTION_ENTRIES }, () =>
        entry('GET Patient?name:contains=x&_total=accurate'),
      ),
    )
    assert.match(readIssue(reply), /^400 too-costly: Cannot complete the request: it takes too much work\. /)
  })

  it('let other requests run between the entries of a batch (BUNDLE-7)', async () => {
    const ended: string[] = []
    const batch = run(
      'batch',
      Array.from({ length: 1_000 }, () => entry('GET Patient?_total=accurate&_sort=name,birthdate')),
    ).then(() => ended.push('batch'))
    await fhir('GET Patient/ann').then(() => ended.push('read'))
    await batch
    assert.deepEqual(ended, ['read', 'batch'])
  })

  it('stop a batch once the client has closed the connection (BUNDLE-7)', async () => {
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
