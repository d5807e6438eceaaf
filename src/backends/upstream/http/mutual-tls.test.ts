import assert from 'node:assert/strict'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { makeCertificate } from '../../../../test/support/certificate.ts'
import { patient } from '../../sqlite/testing/fhir.ts'
import type { UpstreamTls } from '../index.ts'
import { startGateway } from '../testing/start-gateway.ts'

const upstreamCertificate = makeCertificate()
const gatewayCertificate = makeCertificate()
const otherCertificate = makeCertificate()

// Accepts only the client certificate of the gateway.
const upstream = createServer(
  { ...upstreamCertificate, ca: gatewayCertificate.cert, requestCert: true, rejectUnauthorized: true },
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

  async function statusWith(upstreamTls: UpstreamTls): Promise<number> {
    const fhir = await startGateway(url, { upstreamTls: () => upstreamTls })
    const { status } = await fhir.as('all')('GET Patient/ann')
    await fhir.close()
    return status
  }

  it('accepts the certificate of the gateway (GATEWAY-2)', async () => {
    assert.equal(await statusWith({ ...gatewayCertificate, ca: upstreamCertificate.cert }), 200)
  })

  it('refuses a gateway with no certificate or another one', async () => {
    assert.equal(await statusWith({ ca: upstreamCertificate.cert }), 503)
    assert.equal(await statusWith({ ...otherCertificate, ca: upstreamCertificate.cert }), 503)
  })

  it('is not used if the gateway does not trust its certificate', async () => {
    assert.equal(await statusWith({ ...gatewayCertificate }), 503)
    assert.equal(await statusWith({ ...gatewayCertificate, ca: otherCertificate.cert }), 503)
  })
})
