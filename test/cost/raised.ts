import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type MeasuredServers, startMeasuredServers } from '../support/measured-servers.ts'
import { bundle, type Cases, post, type RefusedCases, send } from './cases.ts'
import { condition, created, repeat } from './texts.ts'

const MEGABYTE = 1024 * 1024
const [BODY, CONTENT, ENTRIES] = [16 * MEGABYTE, 100 * MEGABYTE, 5_000]

/** A gateway with the highest limits that its settings allow, in front of a server that accepts every write. */
export async function startRaisedGateway(): Promise<MeasuredServers> {
  const upstream = createServer(async (request, response) => {
    if (request.method === 'GET') {
      const metadata = { resourceType: 'CapabilityStatement', fhirVersion: '4.0.1' }
      return response.writeHead(200, JSON_HEADERS).end(JSON.stringify(metadata))
    }
    if (new URL(request.url ?? '', 'http://x').pathname !== '/') {
      for await (const _ of request);
      return response.writeHead(201, { ...JSON_HEADERS, location: `/Binary/b/_history/1` }).end()
    }
    const entry = JSON.parse(await text(request)).entry.map((_: unknown, at: number) => ({
      response: { status: '201 Created', location: `Condition/c${at}/_history/1`, etag: 'W/"1"' },
    }))
    const answer = { resourceType: 'Bundle', type: 'transaction-response', entry }
    return response.writeHead(200, JSON_HEADERS).end(JSON.stringify(answer))
  })
  await once(upstream.listen(0, '127.0.0.1'), 'listening')
  const servers = await startMeasuredServers({
    SMART_FHIR_UPSTREAM_URL: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
    SMART_FHIR_BODY_LIMIT_MB: String(BODY / MEGABYTE),
    SMART_FHIR_BINARY_LIMIT_MB: String(CONTENT / MEGABYTE),
    SMART_FHIR_BUNDLE_ENTRIES: String(ENTRIES),
  })
  return {
    ...servers,
    get backEnd() {
      return servers.backEnd
    },
    async end() {
      await servers.end()
      upstream.closeAllConnections()
      upstream.close()
    },
  }
}

const JSON_HEADERS = { 'content-type': 'application/fhir+json' }
const PDF = { 'content-type': 'application/pdf' }

/** What can be grown in a request to this gateway, up to its limit. */
export const RAISED: Cases = {
  'items of a raised Questionnaire that is validated': post(
    '/Questionnaire/$validate',
    `{"resourceType":"Questionnaire","status":"active","item":[${repeat(90_000, at => `{"linkId":"l${at}","text":"x","type":"string"}`).join(',')}]}`,
  ),
  'bytes of a raised body: a text': post(
    '/Observation',
    `{"resourceType":"Observation","status":"final","code":{"text":"x"},"valueString":"${'x'.repeat(BODY - 200)}"}`,
  ),
  'bytes of a raised body: base64': post(
    '/Binary',
    `{"resourceType":"Binary","contentType":"text/plain","data":"${'AAAA'.repeat(BODY / 4 - 50)}"}`,
  ),
  'bytes of a streamed content': async servers => ({
    ...(await send('POST', '/Binary', Buffer.alloc(CONTENT, 'x'), PDF)(servers)),
    isStreamed: true,
  }),
  'entries of a raised transaction': bundle(
    'transaction',
    repeat(ENTRIES, at => created(condition(), at)),
  ),
}

/** Requests beyond a raised limit. */
export const REFUSED_RAISED: RefusedCases = {
  'bytes of a streamed content': [
    /104857600 bytes/,
    async servers => ({
      ...(await send('POST', '/Binary', Buffer.alloc(CONTENT + 1, 'x'), PDF)(servers)),
      isStreamed: true,
    }),
  ],
}
