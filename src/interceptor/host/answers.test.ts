import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { after, before, beforeEach, describe, it } from 'node:test'
import { AskedHost, bundle, condition, NOT_WITHIN } from '../testing/asked-host.ts'
import { type Handler, leakyHosts } from '../testing/leaky-hosts.ts'
import { holdAnswer } from './hold-answer.ts'

for (const [name, start] of Object.entries(leakyHosts))
  describe(`${name}Interceptor and what a host answers`, () => {
    const host = new AskedHost(start)
    before(() => host.begin())
    after(() => host.close())
    beforeEach(() => {
      host.asked = 0
    })

    it('releases what is within the grant as the host sent it', async () => {
      host.answers(condition('1'), 200, { 'x-host': 'yes' })
      const { status, text, headers } = await host.ask('GET /Condition/1')
      assert.deepEqual([status, text], [200, JSON.stringify(condition('1'))])
      assert.deepEqual([headers.get('x-host'), headers.get('etag')], ['yes', 'W/"1"'])
    })

    it('gives one answer to what is outside, absent, gone or unchanged', async () => {
      const seen = new Set<string>()
      for (const [status, body] of [
        [200, condition('2')],
        [404, '{}'],
        [410, '{}'],
        [304, ''],
        [200, ''],
        [200, '<Condition/>'],
        [200, '[]'],
        [200, 'null'],
        [200, bundle(condition('1'))],
      ] as const) {
        host.answers(body, status, { 'x-secret': 'version 7' })
        const { status: told, text, headers } = await host.ask('GET /Condition/1')
        seen.add(JSON.stringify([told, text, headers.get('etag'), headers.get('x-secret')]))
      }
      assert.equal(seen.size, 1)
      assert.match([...seen].join(), /^\[403,.*Not within the granted patient, user or filter\./)
    })

    it('tells of a failure that there was one, and not what the host says of it', async () => {
      host.answers('Error: no row for Lindqvist at query.js:12', 500)
      const { status, text } = await host.ask('GET /Condition/1')
      assert.equal(status, 500)
      assert.equal(text.includes('Lindqvist'), false)
      host.answers(condition('1'), 300)
      assert.deepEqual(
        [(await host.ask('GET /Condition/1')).status, (await host.ask('GET /Condition/1')).why],
        [300, 'The FHIR server could not do it.'],
      )
      const outcome = { resourceType: 'OperationOutcome', issue: [{ severity: 'error', code: 'too-costly' }] }
      host.answers(outcome, 429)
      assert.deepEqual(
        [(await host.ask('GET /Condition/1')).status, (await host.ask('GET /Condition/1')).text],
        [429, JSON.stringify(outcome)],
      )
    })

    it('holds back whatever way the host answers', async () => {
      const text = JSON.stringify(condition('2'))
      const WAYS: Handler[] = [
        (_, response) => response.end(text),
        (_, response) => response.end(Buffer.from(text)),
        (_, response) => {
          response.write(text.slice(0, 9))
          response.write(text.slice(9), 'utf8', () => response.end())
        },
        (_, response) => void Readable.from([text.slice(0, 5), text.slice(5)]).pipe(response),
        (_, response) => {
          response.flushHeaders()
          response.end(text, () => undefined)
        },
        (_, response) =>
          response.writeHead(200, 'OK', ['content-type', 'application/json']).end(text, 'utf8'),
        (_, response) => void setImmediate(() => response.end(text)),
      ]
      for (const way of WAYS) {
        host.handler = way
        assert.equal((await host.ask('GET /Condition/1')).why, NOT_WITHIN)
      }
    })

    it('releases all that was written, in whatever way', async () => {
      const text = JSON.stringify(condition('1', { code: { text: 'ä€' } }))
      const bytes = Buffer.from(text)
      const flat = ['x-a', '1', 'x-b', '2']
      let called = 0
      const WAYS: Handler[] = [
        (_, response) => response.writeHead(200, flat).end(text),
        (_, response) =>
          response
            .writeHead(200, 'OK', [
              ['x-a', '1'],
              ['x-b', '2'],
            ] as never)
            .end(bytes),
        (_, response) => response.writeHead(200, { 'x-a': '1', 'x-b': '2', 'x-c': undefined }).end(text),
        (_, response) => {
          response.setHeader('x-a', '1').setHeader('x-b', '2').writeHead(200)
          response.write(bytes.toString('hex').slice(0, 20), 'hex')
          response.end(bytes.toString('hex').slice(20), 'hex')
        },
        (_, response) => {
          response.setHeader('x-a', '1').setHeader('x-b', '2').writeHead(200, 'OK')
          response.write(new Uint8Array(bytes))
          response.end(() => {
            called += 1
          })
        },
      ]
      for (const way of WAYS) {
        host.handler = way
        const told = await host.ask('GET /Condition/1')
        assert.deepEqual([told.status, told.text], [200, text])
        assert.deepEqual([told.headers.get('x-a'), told.headers.get('x-b')], ['1', '2'])
        assert.equal(told.headers.has('x-c'), false)
      }
      assert.equal(called, 1)
    })

    it('does not judge answers of which all is reached', async () => {
      host.answers('<Condition/>')
      assert.equal((await host.ask('GET /Condition/1', 'system/Condition.rs')).text, '<Condition/>')
      assert.equal((await host.ask('GET /Condition', 'system/*.cruds')).text, '<Condition/>')
      assert.equal((await host.ask('HEAD /Condition/1', 'system/Condition.rs')).status, 200)
    })

    it('refuses HEAD where the answer would have to be judged', async () => {
      host.answers(condition('1'))
      assert.deepEqual([(await host.ask('HEAD /Condition/1')).status, host.asked], [403, 0])
    })
  })

describe('holdAnswer', () => {
  it('refuses when the judgement itself fails', async () => {
    const server = createServer((_request, response) => {
      holdAnswer(response, () => {
        throw new Error('broken')
      })
      response.end('secret')
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const told = await fetch(`http://127.0.0.1:${port}/`)
    assert.equal(told.status, 500)
    assert.match(await told.text(), /could not be judged, so it was refused/)
    server.close()
  })
})
