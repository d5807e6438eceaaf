import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import { condition, readIssue } from '../../sqlite/testing/fhir.ts'
import { BROKEN, useHostileGateway } from '../testing/hostile-gateway.ts'
import { searchset } from '../testing/hostile-upstream.ts'

const LIMIT = 100_000
const { all, ann, fhir, upstream } = await useHostileGateway({ responseLimit: LIMIT, timeoutMs: 10_000 })

const FHIR = 'application/fhir+json'
const send =
  (text: string, type = FHIR) =>
  (response: ServerResponse) =>
    response.writeHead(200, { 'content-type': type, etag: 'W/"1"' }).end(text)
const own = JSON.stringify(condition('ca', 'ann'))
const page = JSON.stringify(searchset([condition('ca', 'ann')]))
const cut = (text: string) => text.slice(0, -5)

/** Bodies of a 200 that are not what was asked for, by the kind of request. */
const BODIES = {
  'GET Condition/ca': {
    'no body': '',
    'half a resource': cut(own),
    'two resources': own + own,
    'a string': '"x"',
    null: 'null',
    'a list': `[${own}]`,
    'no resource': '{}',
    'another id': JSON.stringify(condition('cb', 'ann')),
    'another type': JSON.stringify({ ...condition('ca', 'ann'), resourceType: 'Procedure' }),
    'a Bundle': page,
  },
  'GET Condition/ca/_history/1': { 'half a resource': cut(own), 'another id': own.replace('"ca"', '"cb"') },
  'GET Condition?code=x': {
    'no body': '',
    'half a Bundle': cut(page),
    'half a resource in a Bundle': page.replace('"Cough"', '"Cough'),
    'a resource without a type in a Bundle': page.replace('"resourceType":"Condition",', ''),
    'a resource': own,
    'entries that are no list': '{"resourceType":"Bundle","entry":{}}',
    'an entry that is no object': '{"resourceType":"Bundle","entry":[1]}',
  },
  'GET Condition/ca/_history': { 'half a Bundle': cut(page), 'a resource': own },
  'GET Condition/_history': { 'half a Bundle': cut(page), 'a resource': own },
} as const

describe('a response that is not what was asked for', () => {
  for (const [line, bodies] of Object.entries(BODIES)) {
    for (const [name, text] of Object.entries(bodies))
      it(`is 502 for everybody: ${line}, ${name} (GATEWAY-12)`, async () => {
        upstream.answer((_request, response) => send(text)(response))
        for (const caller of ['all', 'ann', 'reader'])
          assert.equal(readIssue(await fhir.as(caller)(line)), BROKEN, caller)
      })

    for (const type of ['text/html', 'application/fhir+xml', 'application/octet-stream', ''])
      it(`is 502 for everybody: ${line}, the content type “${type}” (GATEWAY-12)`, async () => {
        upstream.answer((_request, response) => send(line.includes('?') ? page : own, type)(response))
        for (const caller of [all, ann]) assert.equal(readIssue(await caller(line)), BROKEN)
      })
  }

  it('is an entry with 502 in a batch', async () => {
    upstream.answer((_request, response) => send(cut(own))(response))
    const entry = [{ request: { method: 'GET', url: 'Condition/ca' } }]
    for (const caller of [all, ann]) {
      const reply = await caller('POST ', { resourceType: 'Bundle', type: 'batch', entry })
      assert.match(reply.body.entry?.[0]?.response?.status ?? String(reply.status), /^502/, reply.text)
    }
  })
})

describe('a response that is too long for memory', () => {
  const long = JSON.stringify(condition('ca', 'ann', { note: [{ text: 'x"\\{['.repeat(LIMIT / 4) }] }))

  async function read(base: string, text: string): Promise<string> {
    upstream.answer((_request, response) => send(text)(response))
    const headers = { authorization: 'Bearer all', accept: FHIR }
    return (await fetch(`${base}/fhir/Condition/ca`, { headers })).text()
  }

  it('arrives whole, and breaks off if it is not one whole object (GATEWAY-12)', async () => {
    const base = await fhir.app.listen({ port: 0, host: '127.0.0.1' })
    assert.equal(await read(base, long), long)
    for (const text of [
      cut(long),
      `${long}}`,
      `${long}{}`,
      `[${long}]`,
      long.replace('[{', '[['),
      `"${long}`,
    ])
      await assert.rejects(read(base, text), text.slice(-20))
  })
})
