import assert from 'node:assert/strict'
import { networkInterfaces } from 'node:os'
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
