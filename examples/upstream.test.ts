import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { freePorts } from '../test/support/free-ports.ts'
import { startUpstream, type Upstream } from './upstream.ts'

describe('examples/upstream.ts', () => {
  let upstream: Upstream
  before(async () => {
    const [port = 0] = await freePorts(1)
    upstream = await startUpstream(port, 2)
  })
  after(() => upstream.close())

  it('serves sample patients to whoever asks', async () => {
    const patients = await (await fetch(`${upstream.url}/Patient`)).json()
    assert.deepEqual(patients.entry.map(({ resource }: { resource: { id: string } }) => resource.id).sort(), [
      'patient-1',
      'patient-2',
    ])
  })

  it('cannot be reached but from this machine', async () => {
    const others = Object.values(networkInterfaces()).flatMap(them => them?.filter(it => !it.internal) ?? [])
    for (const { address, family, scopeid } of others) {
      if (scopeid) continue
      const host = family === 'IPv6' ? `[${address}]` : address
      const url = upstream.url.replace('127.0.0.1', host)
      await assert.rejects(fetch(url), { name: 'TypeError' }, url)
    }
  })

  it('fails when the port is taken', async () => {
    await assert.rejects(startUpstream(Number(new URL(upstream.url).port), 0), { code: 'EADDRINUSE' })
  })
})

describe('npm run upstream, with a folder', () => {
  it('keeps its data there', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-example-'))
    const [port = 0] = await freePorts(1)
    const patient = `http://127.0.0.1:${port}/fhir/Patient/kept`
    const body = JSON.stringify({ resourceType: 'Patient', id: 'kept' })
    const headers = { 'content-type': 'application/fhir+json' }
    for (const init of [{ method: 'PUT', body, headers }, {}]) {
      const upstream = await startUpstream(port, 1, folder)
      const reply = await fetch(patient, init)
      assert.ok(reply.ok)
      await reply.text()
      await upstream.close()
    }
    rmSync(folder, { recursive: true })
  })
})
