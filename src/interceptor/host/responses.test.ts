import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { after, before, beforeEach, describe, it } from 'node:test'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import {
  type HostHandler,
  leakyHosts,
  makeBundle,
  makeCondition,
  NOT_WITHIN,
  TestHost,
} from '../testing/test-host.ts'
import { holdResponse } from './check-response.ts'

for (const [name, start] of Object.entries(leakyHosts))
  describe(`${name}Interceptor and the host’s responses`, () => {
    const host = new TestHost(start)
    before(() => host.start())
    after(() => host.close())
    beforeEach(() => {
      host.requests = 0
    })

    it('releases a response within the grant as the host sent it (LIBRARY-2)', async () => {
      host.respondWith(makeCondition('1'), 200, { 'x-host': 'yes' })
      const { status, text, headers } = await host.send('GET /Condition/1')
      assert.deepEqual([status, text], [200, JSON.stringify(makeCondition('1'))])
      assert.deepEqual([headers.get('x-host'), headers.get('etag')], ['yes', 'W/"1"'])
    })

    it('responds alike to resources that are outside the grant, absent, deleted or unchanged (LIBRARY-2)', async () => {
      const seen = new Set<string>()
      for (const [status, body] of [
        [200, makeCondition('2')],
        [404, '{}'],
        [410, '{}'],
        [304, ''],
        [200, ''],
        [200, '<Condition/>'],
        [200, '[]'],
        [200, 'null'],
        [200, makeBundle(makeCondition('1'))],
      ] as const) {
        host.respondWith(body, status, { 'x-secret': 'version 7' })
        const { status: sent, text, headers } = await host.send('GET /Condition/1')
        seen.add(JSON.stringify([sent, text, headers.get('etag'), headers.get('x-secret')]))
      }
      assert.equal(seen.size, 1)
      assert.match([...seen].join(), /^\[403,.*Not within the granted patient, user or filter\./)
    })

    it('checks the response to a read of a shared type, because a host may look it up by its id alone (LIBRARY-2)', async () => {
      for (const path of ['/Practitioner/2', '/Practitioner/2/_history/1'])
        for (const body of [makeCondition('2'), { resourceType: 'Patient', id: '2' }]) {
          host.respondWith(body)
          assert.equal((await host.send(`GET ${path}`)).why, NOT_WITHIN, path)
        }
      const practitioner = { resourceType: 'Practitioner', id: '2' }
      host.respondWith(practitioner)
      assert.equal((await host.send('GET /Practitioner/2')).text, JSON.stringify(practitioner))
      host.respondWith('', 404)
      assert.equal((await host.send('GET /Practitioner/3')).status, 404)
    })

    it('checks a response that the host has compressed, and sends it so (LIBRARY-2)', async () => {
      const own = JSON.stringify(makeCondition('1'))
      const foreign = JSON.stringify(makeCondition('2'))
      for (const [encoding, compress] of Object.entries({
        gzip: gzipSync,
        deflate: deflateSync,
        br: brotliCompressSync,
      })) {
        const respondWith = (text: string) => {
          host.handler = (_, response) =>
            response.setHeader('content-encoding', encoding).end(compress(Buffer.from(text)))
        }
        respondWith(own)
        const { text, headers } = await host.send('GET /Condition/1')
        assert.deepEqual([text, headers.get('content-encoding')], [own, encoding])
        respondWith(foreign)
        assert.equal((await host.send('GET /Condition/1')).why, NOT_WITHIN, encoding)
      }
      host.handler = (_, response) => response.setHeader('content-encoding', 'gzip').end('not gzip')
      assert.equal((await host.send('GET /Condition/1')).status, 500)
    })

    it('asks the host for the whole content, because nothing else can be checked (LIBRARY-2)', async () => {
      const practitioner = { resourceType: 'Practitioner', id: '2' }
      host.handler = ({ headers, url }, response) => {
        if (headers['if-none-match'] || headers['if-modified-since'] || headers.range)
          return response.writeHead(304).end()
        response.end(JSON.stringify(url?.includes('Condition') ? makeCondition('1') : practitioner))
      }
      for (const condition of [
        { 'if-none-match': 'W/"1"' },
        { 'if-modified-since': 'Mon, 16 Nov 2026 00:00:00 GMT' },
        { range: 'bytes=0-1' },
      ]) {
        const read = (url: string) => host.send(`GET ${url}`, undefined, undefined, host.running, condition)
        assert.equal((await read('/Condition/1')).status, 200)
        // A grant that covers the whole type hides nothing.
        assert.equal((await read('/Practitioner/2')).status, 304)
      }
    })

    it('reports a failure, but not the host’s text', async () => {
      host.respondWith('Error: no row for Lindqvist at query.js:12', 500)
      const { status, text } = await host.send('GET /Condition/1')
      assert.equal(status, 500)
      assert.equal(text.includes('Lindqvist'), false)
      host.respondWith(makeCondition('1'), 300)
      assert.deepEqual(
        [(await host.send('GET /Condition/1')).status, (await host.send('GET /Condition/1')).why],
        [300, 'The FHIR server could not process the request.'],
      )
      const outcome = { resourceType: 'OperationOutcome', issue: [{ severity: 'error', code: 'too-costly' }] }
      host.respondWith(outcome, 429)
      assert.deepEqual(
        [(await host.send('GET /Condition/1')).status, (await host.send('GET /Condition/1')).text],
        [429, JSON.stringify(outcome)],
      )
    })

    it('holds the response back, whatever functions the host calls', async () => {
      const text = JSON.stringify(makeCondition('2'))
      const WAYS: HostHandler[] = [
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
        assert.equal((await host.send('GET /Condition/1')).why, NOT_WITHIN)
      }
    })

    it('releases everything that was written, whatever functions the host called', async () => {
      const text = JSON.stringify(makeCondition('1', { code: { text: 'ä€' } }))
      const bytes = Buffer.from(text)
      const flat = ['x-a', '1', 'x-b', '2']
      let called = 0
      const WAYS: HostHandler[] = [
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
        const response = await host.send('GET /Condition/1')
        assert.deepEqual([response.status, response.text], [200, text])
        assert.deepEqual([response.headers.get('x-a'), response.headers.get('x-b')], ['1', '2'])
        assert.equal(response.headers.has('x-c'), false)
      }
      assert.equal(called, 1)
    })

    it('does not check responses that the grant covers completely', async () => {
      host.respondWith('<Condition/>')
      assert.equal((await host.send('GET /Condition/1', 'system/Condition.rs')).text, '<Condition/>')
      assert.equal((await host.send('GET /Condition', 'system/*.cruds')).text, '<Condition/>')
      assert.equal((await host.send('HEAD /Condition/1', 'system/Condition.rs')).status, 200)
    })

    it('refuses HEAD if the response would have to be checked', async () => {
      host.respondWith(makeCondition('1'))
      assert.deepEqual([(await host.send('HEAD /Condition/1')).status, host.requests], [403, 0])
    })
  })

describe('holdResponse', () => {
  it('refuses if the check itself fails', async () => {
    const server = createServer((_request, response) => {
      holdResponse(response, () => {
        throw new Error('broken')
      })
      response.end('secret')
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const response = await fetch(`http://127.0.0.1:${port}/`)
    assert.equal(response.status, 500)
    assert.match(await response.text(), /could not be checked, so it was refused/)
    server.close()
  })
})
