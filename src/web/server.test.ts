import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { FORM, useServers } from './testing/make-server.ts'

const make = useServers()

describe('createServer: request ids', () => {
  it('puts a fresh id on every response and on its log line', async () => {
    const { app, lines } = await make()
    const first = await app.inject('/page/1')
    const second = await app.inject('/nowhere')
    assert.match(String(first.headers['x-request-id']), /^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){2}$/)
    assert.notEqual(first.headers['x-request-id'], second.headers['x-request-id'])
    assert.deepEqual(
      lines().map(line => line.requestId),
      [first.headers['x-request-id'], second.headers['x-request-id']],
    )
  })

  it('keeps a short and safe id of the caller', async () => {
    const { app } = await make()
    const response = await app.inject({ url: '/page/1', headers: { 'x-request-id': 'trace-1234.5:6_x' } })
    assert.equal(response.headers['x-request-id'], 'trace-1234.5:6_x')
  })

  for (const unsafe of ['abc', 'a b c d', '<script>', `${'x'.repeat(65)}`, 'line\u00e9', '']) {
    it(`replaces ${JSON.stringify(unsafe.slice(0, 12))}`, async () => {
      const { app } = await make()
      const response = await app.inject({ url: '/page/1', headers: { 'x-request-id': unsafe } })
      assert.notEqual(response.headers['x-request-id'], unsafe)
    })
  }

  it('is on answers to addresses that cannot be read', async () => {
    const { app } = await make()
    const response = await app.inject('/%zz')
    assert.equal(response.statusCode, 400)
    assert.match(String(response.headers['x-request-id']), /^.{14}$/)
    assert.match(String(response.headers['content-security-policy']), /style-src 'self'/)
  })
})

describe('createServer: log', () => {
  it('has one line a request, without query, headers or body', async () => {
    const { app, lines, log } = await make()
    await app.inject({
      method: 'POST',
      url: '/form?launch=launch-secret&code=code-secret&state=state-secret&name=Juniper',
      headers: { ...FORM, authorization: 'Bearer bearer-secret', cookie: 'session=cookie-secret' },
      payload: 'username=robin&password=form-secret',
    })
    assert.equal(lines().length, 1)
    const [line] = lines()
    assert.deepEqual(
      { ...line, time: 0, ms: 0, requestId: '' },
      {
        level: 'info',
        time: 0,
        server: 'auth',
        requestId: '',
        method: 'POST',
        path: '/form',
        status: 200,
        ms: 0,
        address: '127.0.0.1',
        msg: 'Request',
      },
    )
    assert.doesNotMatch(log(), /secret|Juniper|robin/)
  })

  it('keeps probes and assets to the debug level', async () => {
    const { app, lines } = await make()
    await app.inject('/healthz')
    await app.inject('/readyz')
    assert.deepEqual(
      lines().map(line => line.level),
      ['debug', 'debug'],
    )
  })

  it('says what broke, and takes secrets out of it', async () => {
    const { app, lines, log } = await make()
    assert.equal((await app.inject('/boom')).statusCode, 500)
    assert.deepEqual(
      lines().map(line => [line.level, line.msg]),
      [
        ['error', 'Request failed'],
        ['info', 'Request'],
      ],
    )
    assert.match(log(), /Broken by access_token=\[secret\]/)
    assert.doesNotMatch(log(), /access_token=abc/)
  })
})
