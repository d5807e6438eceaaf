import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { FORM, useServers } from './testing/make-server.ts'

const make = useServers()

describe('cross-site forms', () => {
  let app: FastifyInstance
  before(async () => {
    app = (await make()).app
  })
  const cases: readonly (readonly [headers: Record<string, string>, status: number])[] = [
    [{}, 200],
    [{ 'sec-fetch-site': 'same-origin' }, 200],
    [{ 'sec-fetch-site': 'none' }, 200],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'anything' }, 403],
    [{ 'sec-fetch-site': 'same-origin', origin: 'http://evil.example' }, 200],
    [{ 'sec-fetch-site': 'cross-site', origin: 'http://localhost:9000' }, 403],
    [{ origin: 'http://localhost:9000' }, 200],
    [{ origin: 'http://127.0.0.1:9000', host: '127.0.0.1:9000' }, 200],
    [{ origin: 'http://127.0.0.1:9000', host: 'localhost:9000' }, 403],
    [{ origin: 'http://localhost:8081' }, 403],
    [{ origin: 'https://localhost:9000' }, 403],
    [{ origin: 'null' }, 403],
    [{ origin: '' }, 403],
  ]
  for (const [headers, status] of cases) {
    it(`sends ${status} to ${JSON.stringify(headers)} (HTTP-3)`, async () => {
      const response = await app.inject({
        method: 'POST',
        url: '/form',
        headers: { ...FORM, ...headers },
        payload: 'a=1',
      })
      assert.equal(response.statusCode, status)
    })
  }

  it('refuses a cross-site form before it reads the body', async () => {
    const response = await app.inject({
      method: 'POST',
      url: '/form',
      headers: { 'content-type': 'application/json', 'sec-fetch-site': 'cross-site' },
      payload: 'not json',
    })
    assert.equal(response.statusCode, 403)
  })

  it('allows another site to link to a page', async () => {
    const response = await app.inject({ url: '/page/1', headers: { 'sec-fetch-site': 'cross-site' } })
    assert.equal(response.statusCode, 200)
  })

  it('takes no header for forwarded requests as its own host, whichever proxy is trusted (HTTP-3)', async () => {
    const { app } = await make({ trustProxy: 'loopback' })
    const forwarded = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' }
    const send = async (origin: string, headers: Record<string, string>) => {
      const all = { ...FORM, host: '127.0.0.1:9000', ...headers, origin }
      const response = await app.inject({ method: 'POST', url: '/form', headers: all, payload: 'a=1' })
      return response.statusCode
    }
    for (const origin of ['http://evil.example', 'https://evil.example', 'https://127.0.0.1:9000'])
      assert.equal(await send(origin, forwarded), 403, origin)
    assert.equal(await send('http://127.0.0.1:9000', forwarded), 200)
    assert.equal(await send('http://localhost:9000', forwarded), 200)
    const forwardedForm = { ...forwarded, forwarded: 'host=evil.example;proto=https' }
    assert.equal(await send('https://evil.example', forwardedForm), 403)
  })

  it('accepts cross-site forms on the configured paths (HTTP-3)', async () => {
    const { app } = await make({ acceptsCrossSite: path => path === '/form' })
    const response = await app.inject({
      method: 'POST',
      url: '/form?x=1',
      headers: { ...FORM, 'sec-fetch-site': 'cross-site' },
      payload: 'a=1',
    })
    assert.equal(response.statusCode, 200)
  })
})
