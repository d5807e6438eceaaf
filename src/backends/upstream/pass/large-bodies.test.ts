import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createBodyLimits } from '../../../fhir/index.ts'
import { fullAccess } from '../../../smart/index.ts'
import {
  condition,
  createAuthenticator,
  type Fhir,
  patient,
  patientAccess,
  readIssue,
  startFhir,
} from '../../sqlite/testing/fhir.ts'
import { json, startHostile, type UpstreamHandler } from '../testing/hostile-upstream.ts'
import { startGateway } from '../testing/start-gateway.ts'

const guard = createAuthenticator({ all: fullAccess, ann: patientAccess('ann') })
const MEGABYTE = 1024 * 1024

const letter = (megabytes: number) => ({
  resourceType: 'DocumentReference',
  id: 'letter',
  status: 'current',
  subject: { reference: 'Patient/ann' },
  content: [
    { attachment: { contentType: 'application/pdf', data: 'AAAA'.repeat((megabytes * MEGABYTE) / 4) } },
  ],
})

const conditions = (type: 'batch' | 'transaction', count: number) => ({
  resourceType: 'Bundle',
  type,
  entry: Array.from({ length: count }, (_, at) => {
    const { id: _id, ...resource } = condition(`c${at}`, 'ann')
    return { resource, request: { method: 'POST', url: 'Condition' } }
  }),
})

/** Accepts every write, and answers as the request prefers. */
const accept: UpstreamHandler = (request, response, body) => {
  if (request.method === 'GET') return json(response, {}, 404)
  const sent = JSON.parse(body)
  const isMinimal = /return=minimal/.test(String(request.headers.prefer))
  const entry = sent.entry?.map((_it: unknown, at: number) => ({
    response: { status: '201 Created', location: `Condition/c${at}/_history/1`, etag: 'W/"1"' },
  }))
  const answer = entry ? { resourceType: 'Bundle', type: 'transaction-response', entry } : sent
  response.writeHead(entry ? 200 : 201, { 'content-type': 'application/fhir+json', etag: 'W/"1"' })
  return response.end(isMinimal && !entry ? '' : JSON.stringify(answer))
}

async function withGateway(
  options: { readonly bodyLimit?: number; readonly entryLimit?: number },
  work: (fhir: Fhir) => Promise<void>,
): Promise<void> {
  const upstream = await startHostile()
  upstream.answer(accept)
  const fhir = await startGateway(upstream.url, { guard, profile: 'strict', ...options })
  try {
    await work(fhir)
  } finally {
    await fhir.close()
    await upstream.close()
  }
}

describe('the size of a body', () => {
  it('is limited to 16 MB by default, and to the setting (LIMIT-8)', async () => {
    await withGateway({}, async fhir => {
      for (const caller of ['ann', 'all']) {
        const by = fhir.as(caller)
        assert.equal((await by('PUT DocumentReference/letter', letter(15.9))).status, 201)
        const entry = [
          { resource: letter(15.9), request: { method: 'PUT', url: 'DocumentReference/letter' } },
        ]
        for (const type of ['batch', 'transaction'])
          assert.equal((await by('POST ', { resourceType: 'Bundle', type, entry })).status, 200, type)
        const tooLarge = await by('PUT DocumentReference/letter', letter(16))
        assert.match(readIssue(tooLarge), /^413 .*16777216 bytes/)
      }
    })
    await withGateway({ bodyLimit: 8 * MEGABYTE }, async fhir => {
      for (const caller of ['ann', 'all'])
        assert.equal((await fhir.as(caller)('PUT DocumentReference/letter', letter(6))).status, 201)
      const tooLarge = await fhir.as('ann')('PUT DocumentReference/letter', letter(9))
      assert.match(readIssue(tooLarge), /^413 .*8388608 bytes/)
    })
  })

  it('is the same for the embedded server, which returns what it stores (LIMIT-8)', async () => {
    const fhir = await startFhir({ guard, bodyLimit: 8 * MEGABYTE })
    const ann = fhir.as('ann')
    assert.equal((await ann('PUT Patient/ann', patient('ann'))).status, 201)
    assert.equal((await ann('PUT DocumentReference/letter', letter(6))).status, 201)
    const stored = await ann('GET DocumentReference/letter')
    assert.deepEqual(stored.body.content, letter(6).content)
    assert.equal((await ann('GET DocumentReference')).body.total, 1)
    await fhir.close()
  })

  it('does not raise the number of values in JSON, which the number of entries raises up to a limit', () => {
    assert.deepEqual(
      [[], [16 * MEGABYTE], [16 * MEGABYTE, 2_000], [16 * MEGABYTE, 5_000], [16 * MEGABYTE, 10]].map(
        ([bytes, entries]) => createBodyLimits(bytes, entries).values,
      ),
      [200_000, 200_000, 400_000, 500_000, 200_000],
    )
  })
})

describe('the number of entries', () => {
  it('is limited to 1,000 in a transaction and 2,000 in a batch by default', async () => {
    await withGateway({}, async fhir => {
      const ann = fhir.as('ann')
      assert.equal((await ann('POST ', conditions('transaction', 1_000))).status, 200)
      const tooMany = await ann('POST ', conditions('transaction', 1_001))
      assert.match(readIssue(tooMany), /^400 too-costly: .* a transaction may have up to 1000 entries$/)
      const batch = await ann('POST ', conditions('batch', 2_001))
      assert.match(readIssue(batch), /^400 too-costly: .* a batch may have up to 2000 entries$/)
    })
  })

  it('follows the setting (LIMIT-8)', async () => {
    await withGateway({ entryLimit: 1_500 }, async fhir => {
      for (const caller of ['ann', 'all']) {
        const reply = await fhir.as(caller)('POST ', conditions('transaction', 1_500))
        assert.deepEqual([reply.status, reply.body.entry?.length], [200, 1_500], reply.text.slice(0, 300))
      }
      const tooMany = await fhir.as('ann')('POST ', conditions('transaction', 1_501))
      assert.match(readIssue(tooMany), /up to 1500 entries$/)
    })
  })
})
