import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { createGzip } from 'node:zlib'
import { fullAccess } from '../../../smart/index.ts'
import {
  createAuthenticator,
  type Fhir,
  patient,
  patientAccess,
  readIssue,
} from '../../sqlite/testing/fhir.ts'
import type { GatewayOptions } from '../index.ts'
import { type HostileUpstream, startHostile } from '../testing/hostile-upstream.ts'
import { startGateway } from '../testing/start-gateway.ts'

const guard = createAuthenticator({ all: fullAccess, ann: patientAccess('ann') })
const LIMIT = 20_000

let upstream: HostileUpstream
before(async () => {
  upstream = await startHostile()
})
after(() => upstream.close())

async function withGateway<T>(
  options: Partial<GatewayOptions>,
  work: (fhir: Fhir, url: string) => Promise<T>,
): Promise<T> {
  const fhir = await startGateway(upstream.url, { guard, responseLimit: LIMIT, ...options })
  try {
    return await work(fhir, `${await fhir.app.listen({ port: 0, host: '127.0.0.1' })}/fhir/`)
  } finally {
    await fhir.close()
  }
}

const START = '{"resourceType":"Bundle","entry":[{"fullUrl":"urn:x","resource":{"x":"'

/** Answers every request with a body that does not end. The returned function waits until none is read any longer. */
function answerWithoutEnd(write: (response: ServerResponse) => void): () => Promise<void> {
  const open = new Set<ServerResponse>()
  upstream.answer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/fhir+json' }).write(START)
    open.add(response)
    response.on('close', () => open.delete(response))
    write(response)
  })
  return async () => {
    for (const response of open) await once(response, 'close')
  }
}

const flood = (response: ServerResponse) => {
  const more = () => {
    while (!response.destroyed && response.write('x'.repeat(10_000)));
  }
  response.on('drain', more)
  more()
}
const silence = () => undefined
const trickle = (response: ServerResponse) => {
  const timer = setInterval(() => response.write('x'), 5)
  response.on('close', () => clearInterval(timer))
}

const PATHS = ['Condition/ca', 'Condition', 'Condition/_history', 'Patient/ann/$everything', 'Binary/b']

describe('a response without end', () => {
  for (const caller of ['ann', 'all'])
    for (const path of PATHS)
      for (const [name, write] of Object.entries({ silence, trickle, flood }))
        it(`is no longer read after ${caller} has left: ${path}, ${name} (GATEWAY-35)`, {
          timeout: 20_000,
        }, async () => {
          const untilLeft = answerWithoutEnd(write)
          await withGateway({ timeoutMs: 60_000 }, async (_fhir, url) => {
            const leaving = AbortSignal.timeout(100)
            const request = { headers: { authorization: `Bearer ${caller}` }, signal: leaving }
            await fetch(url + path, request).then(
              reply => reply.body?.pipeTo(new WritableStream()).catch(() => undefined),
              () => undefined,
            )
            await untilLeft()
          })
        })

  it('is cut off after a number of bytes if it is streamed, compressed or not (GATEWAY-35)', {
    timeout: 20_000,
  }, async () => {
    const streamLimit = { bytes: 300_000, ms: 60_000 }
    const read = (_fhir: Fhir, url: string) =>
      fetch(`${url}Condition`, { headers: { authorization: 'Bearer all' } }).then(reply => reply.text())
    answerWithoutEnd(flood)
    await assert.rejects(withGateway({ streamLimit }, read))
    const { promise: left, resolve } = Promise.withResolvers<void>()
    upstream.answer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/fhir+json', 'content-encoding': 'gzip' })
      const packing = createGzip()
      packing.pipe(response)
      response.on('close', () => packing.destroy()).on('close', resolve)
      const more = () => {
        while (!packing.destroyed && packing.write('x'.repeat(10_000)));
      }
      packing.on('drain', more)
      more()
    })
    await assert.rejects(withGateway({ streamLimit, responseLimit: 20 }, read))
    await left
  })

  it('is cut off after a time if it is streamed (GATEWAY-35)', { timeout: 20_000 }, async () => {
    const untilLeft = answerWithoutEnd(trickle)
    const streamLimit = { bytes: 1e9, ms: 200 }
    await withGateway({ streamLimit, responseLimit: 20 }, async (_fhir, url) => {
      const reply = await fetch(`${url}Condition`, { headers: { authorization: 'Bearer all' } })
      await assert.rejects(reply.text())
      await untilLeft()
    })
  })

  it('frees its connection when the caller leaves, also a waiting one', { timeout: 20_000 }, async () => {
    const untilLeft = answerWithoutEnd(silence)
    await withGateway({ timeoutMs: 60_000, connections: 1 }, async (fhir, url) => {
      const read = () => {
        const request = { headers: { authorization: 'Bearer ann' }, signal: AbortSignal.timeout(100) }
        return assert.rejects(fetch(`${url}Condition`, request))
      }
      await Promise.all([read(), read(), read()])
      await untilLeft()
      upstream.answerJson(patient('ann'))
      assert.equal((await fhir.as('ann')('GET Patient/ann')).status, 200)
      assert.equal((await fhir.app.inject('/readyz')).statusCode, 200)
    })
  })

  it('does not stop a change whose caller leaves (GATEWAY-35)', { timeout: 20_000 }, async () => {
    const done = Promise.withResolvers<boolean>()
    upstream.answer((request, response) => {
      if (request.method !== 'POST') return response.writeHead(404).end()
      response.on('close', () => done.resolve(response.writableFinished))
      return setTimeout(() => response.writeHead(201).end(), 400)
    })
    await withGateway({ timeoutMs: 60_000 }, async (_fhir, url) => {
      const request = {
        method: 'POST',
        headers: { authorization: 'Bearer all', 'content-type': 'application/fhir+json' },
        body: JSON.stringify({ resourceType: 'Basic', code: { text: 'x' } }),
        signal: AbortSignal.timeout(100),
      }
      await assert.rejects(fetch(`${url}Basic`, request))
      assert.equal(await done.promise, true)
    })
  })

  it('of the token endpoint is no token', { timeout: 20_000 }, async () => {
    let sent = 0
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 10_000
        controller.enqueue(new Uint8Array(10_000))
      },
    })
    const auth = {
      kind: 'client-credentials',
      tokenUrl: 'https://idp.test',
      clientId: 'a',
      clientSecret: 'b',
    } as const
    await withGateway({ auth, fetch: async () => new Response(body) }, async fhir =>
      assert.match(readIssue(await fhir.as('ann')('GET Patient/ann')), /^503/),
    )
    assert.ok(sent < 200_000, `${sent} bytes were read`)
  })
})
