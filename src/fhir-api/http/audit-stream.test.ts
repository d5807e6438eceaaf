import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { recordPatients } from './audit-stream.ts'

const BASE = 'http://fhir.test/fhir'

const BODY = JSON.stringify({
  entry: [
    { fullUrl: `${BASE}/Patient/own`, resource: { resourceType: 'Patient', id: 'own' } },
    {
      resource: {
        subject: { reference: 'Patient/relative' },
        performer: [{ reference: `${BASE}/Patient/absolute` }],
      },
    },
    {
      resource: {
        subject: { reference: 'Patient/version/_history/2' },
        note: '"reference":"Patient/quoted"',
      },
    },
    {
      resource: {
        subject: { reference: 'http://other.test/fhir/Patient/elsewhere' },
        ref: 'Patient/unnamed',
      },
    },
  ],
}).replace('Patient/absolute', 'Patient\\/absolute')

function divide(body: string, size: number): Readable {
  const bytes = Buffer.from(body)
  return Readable.from(
    Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
      bytes.subarray(at * size, (at + 1) * size),
    ),
  )
}

describe('recordPatients', () => {
  for (const size of [1, 7, 50, 10_000])
    it(`finds the patients of a body in chunks of ${size} bytes, and does not change it`, async () => {
      const records: (readonly string[])[] = []
      const stream = recordPatients(divide(BODY, size), BASE, async patients => void records.push(patients))
      assert.equal(await text(stream), BODY)
      assert.deepEqual(records, [['own', 'relative', 'absolute', 'version']])
    })

  it('records many patients in parts, each once, before the response ends', async () => {
    const ids = Array.from({ length: 12_000 }, (_, at) => `p${at % 11_000}`)
    const body = JSON.stringify(ids.map(id => ({ reference: `Patient/${id}` })))
    const records: (readonly string[])[] = []
    const stream = recordPatients(divide(body, 10_000), BASE, async patients => void records.push(patients))
    await text(stream)
    assert.ok(records.length > 1 && records.every(({ length }) => length < 6_000))
    const all = records.flat()
    assert.deepEqual([all.length, new Set(all).size], [11_000, 11_000])
  })

  it('breaks off a response whose record cannot be stored', async () => {
    const stream = recordPatients(divide(BODY, 50), BASE, () => Promise.reject(new Error('no trail')))
    await assert.rejects(text(stream), /no trail/)
  })

  it('records the patients of the part that was sent if the client leaves', async () => {
    const { promise, resolve } = Promise.withResolvers<readonly string[]>()
    const source = new Readable({ read() {} })
    const stream = recordPatients(source, BASE, async patients => resolve(patients))
    source.push('{"reference":"Patient/ann"}')
    stream.once('data', () => stream.destroy())
    assert.deepEqual(await promise, ['ann'])
    assert.equal(source.destroyed, true)
  })
})
