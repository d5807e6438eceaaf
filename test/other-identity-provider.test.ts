/** The gateway alone, in front of an upstream server, with tokens of another identity provider. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { startUpstream, type UpstreamProcess } from '../src/backends/upstream/testing/start-gateway.ts'
import { newPlace, type Place, type Started, startProcess } from './support/started.ts'

const { publicKey, privateKey } = await generateKeyPair('RS256')
const key = { ...(await exportJWK(publicKey)), kid: 'k', alg: 'RS256', use: 'sig' }

describe('the gateway alone, with another identity provider', () => {
  const idp = createServer((request, response) => {
    const document = request.url === '/jwks' ? { keys: [key] } : configuration
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
  })
  let configuration: Readonly<Record<string, unknown>> = {}
  let issuer = ''
  let upstream: UpstreamProcess
  let place: Place
  let started: Started

  const readyUrl = () => `${place.fhirUrl.replace('/fhir', '')}/readyz`

  before(async () => {
    await new Promise<void>(resolve => idp.listen(0, '127.0.0.1', resolve))
    issuer = `http://127.0.0.1:${(idp.address() as AddressInfo).port}`
    configuration = {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      capabilities: ['launch-standalone', 'permission-v2'],
    }
    upstream = await startUpstream()
    await fetch(`${upstream.url}/Patient/ann`, {
      method: 'PUT',
      headers: { 'content-type': 'application/fhir+json' },
      body: JSON.stringify({ resourceType: 'Patient', id: 'ann' }),
    })
    place = await newPlace({
      SMART_FHIR_UPSTREAM_URL: upstream.url,
      SMART_TRUSTED_ISSUERS_FILE: 'issuers.yaml',
      SMART_FHIR_SMART_CONFIGURATION_URL: `${issuer}/.well-known/smart-configuration`,
    })
    const trusted = [{ issuer, 'jwks-url': `${issuer}/jwks`, 'patient-claim': 'smart.patient' }]
    writeFileSync(join(place.folder, 'issuers.yaml'), JSON.stringify(trusted))
    started = startProcess(['start', 'fhir'], place)
    await started.printed(/is running/)
    // The server fetches the configuration of the provider after it listens.
    while (!(await fetch(readyUrl())).ok) await setImmediate()
  })
  after(async () => {
    started.child.kill('SIGTERM')
    await started.ended()
    await upstream.end()
    idp.close()
    place.remove()
  })

  const read = async (id: string) => {
    const token = await new SignJWT({ scope: 'patient/Patient.rs', smart: { patient: 'ann' } })
      .setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', kid: 'k' })
      .setIssuer(issuer)
      .setAudience(place.fhirUrl)
      .setSubject('somebody')
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(privateKey)
    return (await fetch(`${place.fhirUrl}/Patient/${id}`, { headers: { authorization: `Bearer ${token}` } }))
      .status
  }

  it('directs apps to the provider (GATEWAY-17)', async () => {
    const response = await fetch(`${place.fhirUrl}/.well-known/smart-configuration`)
    assert.deepEqual([response.status, await response.json()], [200, configuration])
    const metadata = await (await fetch(`${place.fhirUrl}/metadata`)).text()
    assert(metadata.includes(`${issuer}/authorize`))
    assert(!metadata.includes(place.authUrl))
  })

  it('accepts its tokens within their grants, and is ready without an auth server (BEARER-13)', async () => {
    assert.deepEqual([await read('ann'), await read('bob')], [200, 403])
    assert.equal((await fetch(readyUrl())).status, 200)
  })
})
