import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { isFailure } from '../core/index.ts'
import { exportFrom } from './bulk-client.ts'
import { ExportFiles } from './files.ts'

const BASE = 'http://fhir.test/fhir'
const HOUR_MS = 3_600_000

/** The pauses of an export whose status is asked for twice. */
async function listPauses(retryAfter: string): Promise<readonly number[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-bulk-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  const files = ExportFiles.open(join(folder, 'out'), false)
  assert(!isFailure(files))
  const manifest = { transactionTime: '2026-01-01T00:00:00Z', request: BASE, output: [], error: [] }
  const answers = [
    new Response(null, { status: 202, headers: { 'content-location': `${BASE}/status` } }),
    new Response(null, { status: 202, headers: { 'retry-after': retryAfter } }),
    Response.json(manifest),
    new Response(null, { status: 202 }),
  ]
  const pauses: number[] = []
  const report = await exportFrom({
    base: BASE,
    fetch: async () => answers.shift() ?? assert.fail('one request too many'),
    authorization: { get: () => 'Bearer x', forget: () => {} },
    files,
    selection: {},
    signal: new AbortController().signal,
    wait: async ms => pauses.push(ms),
    onProgress: () => {},
    onPreparing: () => {},
  })
  assert(!isFailure(report))
  return pauses
}

describe('exportFrom', () => {
  for (const [retryAfter, pause] of [
    ['0', 1000],
    ['120', 120_000],
    ['86400', HOUR_MS],
    ['99999', HOUR_MS],
    ['9'.repeat(400), HOUR_MS],
    ['Fri, 31 Dec 9999 23:59:59 GMT', HOUR_MS],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 1000],
    ['soon', 1000],
  ] as const)
    it(`waits ${pause} ms if the server says ${retryAfter.slice(0, 30)}`, async () => {
      assert.deepEqual(await listPauses(retryAfter), [pause])
    })
})
