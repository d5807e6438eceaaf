import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { failFor, type Interaction } from '../../fhir/index.ts'
import { type EnforcementPolicy, parseScopes } from '../../smart/index.ts'
import { refuse } from '../refuse.ts'
import { authUrl, fhirBaseUrl } from '../testing/test-issuer.ts'
import { checkExchange } from './check-exchange.ts'
import { sendRefusal } from './check-response.ts'

const policy: EnforcementPolicy = { fhirBaseUrl, contexts: ['patient', 'system'], searchPermission: 'r' }
const everything: Interaction = {
  kind: 'operation',
  name: '$everything',
  type: 'Patient',
  id: '1',
  params: [],
  posted: true,
}

function check(interaction: Interaction, scope: string, headers: Record<string, string>, body?: unknown) {
  const request = { method: 'POST', headers } as unknown as IncomingMessage
  const response = {} as ServerResponse
  const grant = { scopes: parseScopes(scope), patient: '1' }
  return checkExchange({ request, response, url: '', body }, interaction, grant, policy, {
    authUrl,
    fhirBaseUrl,
  })
}

describe('checkExchange', () => {
  it('refuses a body that the host did not read, because it is unchecked (LIBRARY-9)', async () => {
    // Express 4 leaves an empty object.
    for (const headers of [
      { 'content-length': '1' },
      { 'content-length': '500' },
      { 'transfer-encoding': 'chunked' },
      { 'transfer-encoding': 'chunked', 'content-length': '0' },
    ])
      for (const body of [undefined, null, {}])
        assert.equal((await check(everything, 'patient/*.rs', headers, body))?.reason, 'body-not-read')
    for (const headers of [{}, { 'content-length': '0' }])
      assert.equal(await check(everything, 'patient/*.rs', headers), undefined)
    const parameters = { resourceType: 'Parameters' }
    assert.equal(await check(everything, 'patient/*.rs', { 'content-length': '30' }, parameters), undefined)
  })

  it('needs the content of a create only under a limited grant', async () => {
    const create: Interaction = { kind: 'create', type: 'Condition' }
    assert.equal(await check(create, 'system/Condition.c', {}), undefined)
    assert.equal((await check(create, 'patient/Condition.c', {}))?.reason, 'body-not-read')
  })
})

describe('sendRefusal', () => {
  it('keeps the headers of every response, and drops those of this one', async () => {
    const server = createServer((_request, response) => {
      response.statusMessage = 'Found Lindqvist'
      for (const name of ['etag', 'last-modified', 'location', 'x-secret', 'link', 'content-encoding'])
        response.setHeader(name, 'secret')
      for (const name of ['access-control-allow-origin', 'vary', 'x-request-id', 'x-content-type-options'])
        response.setHeader(name, 'kept')
      sendRefusal(response, {
        ...refuse(failFor('stored-not-within')),
        headers: { 'www-authenticate': 'Bearer' },
      })
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    server.close()
    const {
      date: _,
      connection: __,
      'keep-alive': ___,
      'content-length': ____,
      ...headers
    } = Object.fromEntries(response.headers)
    assert.deepEqual([response.status, response.statusText], [403, 'Forbidden'])
    assert.deepEqual(headers, {
      'access-control-allow-origin': 'kept',
      vary: 'kept',
      'x-request-id': 'kept',
      'x-content-type-options': 'kept',
      'www-authenticate': 'Bearer',
      'content-type': 'application/fhir+json; charset=utf-8',
      'cache-control': 'no-store',
    })
  })
})
