import assert from 'node:assert/strict'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { makeCertificate } from '../../../test/support/certificate.ts'
import { patient } from '../sqlite/testing/fhir.ts'
import type { GatewayOptions } from './index.ts'
import { startGateway } from './testing/start-gateway.ts'

const theirs = makeCertificate()
const ours = makeCertificate()
const someone = makeCertificate()

// Lets in only who shows the gateway's certificate.
const upstream = createServer(
  { ...theirs, ca: ours.cert, requestCert: true, rejectUnauthorized: true },
  (_, response) =>
    response.writeHead(200, { 'content-type': 'application/fhir+json' }).end(JSON.stringify(patient('ann'))),
)

describe('an upstream behind TLS', () => {
  let url = ''
  before(async () => {
    await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
    url = `https://127.0.0.1:${(upstream.address() as AddressInfo).port}/up`
  })
  after(() => {
    upstream.closeAllConnections()
    upstream.close()
  })

  async function statusWith(upstreamTls: NonNullable<GatewayOptions['upstreamTls']>): Promise<number> {
    const fhir = await startGateway(url, { upstreamTls })
    const { status } = await fhir.as('all')('GET Patient/ann')
    await fhir.close()
    return status
  }

  it('is shown the certificate of the gateway', async () => {
    assert.equal(await statusWith({ ...ours, ca: theirs.cert }), 200)
  })

  it('lets nobody in who shows none, or another', async () => {
    assert.equal(await statusWith({ ca: theirs.cert }), 503)
    assert.equal(await statusWith({ ...someone, ca: theirs.cert }), 503)
  })

  it('is not spoken to when its own is of no authority that is trusted', async () => {
    assert.equal(await statusWith({ ...ours }), 503)
    assert.equal(await statusWith({ ...ours, ca: someone.cert }), 503)
  })
})
