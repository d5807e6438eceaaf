import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  BASE,
  condition,
  NOT_WITHIN,
  observation,
  patient,
  readIds,
  readIssue,
} from '../../sqlite/testing/fhir.ts'
import { makeOutside, useHostileGateway } from '../testing/hostile-gateway.ts'
import { json, searchset } from '../testing/hostile-upstream.ts'

const { all, ann, fhir, upstream } = await useHostileGateway()

describe('a request to the upstream', () => {
  it('contains neither the token nor the cookies nor the forwarding headers of the caller (GATEWAY-2)', async () => {
    upstream.answerJson(condition('ca', 'ann'))
    await ann('GET Condition/ca', undefined, {
      cookie: 'a=b',
      forwarded: 'for=1.2.3.4',
      'x-forwarded-for': '1.2.3.4',
      'x-forwarded-host': 'evil.test',
      'proxy-authorization': 'Basic x',
      te: 'trailers',
      'x-custom': 'y',
      'x-request-id': 'my-request',
      'if-none-match': 'W/"1"',
    })
    const headers = upstream.seen.at(-1)?.headers ?? {}
    assert.deepEqual(Object.keys(headers).toSorted(), ['accept', 'connection', 'host', 'x-request-id'])
    assert.equal(headers['x-request-id'], 'my-request')
  })

  it('contains the checked content: the last of repeated names, and decimals with all digits', async () => {
    upstream.answerJson(observation('new', 'ann'), 201)
    const { id: _, ...mine } = observation('x', 'ann', { valueQuantity: { value: 1 } })
    const text = JSON.stringify(mine).replace('"value":1', '"value":1.50')
    await ann('POST Observation', text.replace('{', '{"subject":{"reference":"Patient/bob"},'))
    const sent = upstream.seen.at(-1)?.body ?? ''
    assert.match(sent, /"value":1\.50/)
    assert.doesNotMatch(sent, /\bbob\b/)
  })

  it('has local references, and the URL of the upstream in place of that of the gateway', async () => {
    upstream.answerJson(condition('new', 'ann'), 201)
    const { id: _, ...mine } = condition('x', 'ann', {
      subject: { reference: `${BASE}/Patient/ann` },
      identifier: [{ system: `${BASE}/ids`, value: '1' }],
    })
    assert.equal((await ann('POST Condition', mine)).status, 201)
    const { subject, identifier } = JSON.parse(upstream.seen.at(-1)?.body ?? '')
    assert.deepEqual(subject, { reference: 'Patient/ann' })
    assert.equal(identifier[0].system, `${upstream.url}/ids`)
  })

  it('has no reference of a limited caller to a hidden resource by the URL of the upstream (WRITE-11)', async () => {
    upstream.answer((request, response) =>
      request.method === 'GET' || request.url?.endsWith('/_search')
        ? json(response, searchset([condition('of-bob', 'bob')]))
        : json(response, condition('new', 'ann'), 201),
    )
    const hidden = { reference: `${upstream.url}/Condition/of-bob` }
    const { id: _, ...mine } = condition('x', 'ann', { evidence: [{ detail: [hidden] }] })
    const attachment = { url: `${upstream.url}/Binary/of-bob` }
    const subject = { reference: 'Patient/ann' }
    const document = {
      resourceType: 'DocumentReference',
      status: 'current',
      subject,
      content: [{ attachment }],
    }
    const entry = [{ resource: mine, request: { method: 'POST', url: 'Condition' } }]
    const before = upstream.seen.length
    assert.equal(readIssue(await ann('POST Condition', mine)), makeOutside('Condition.evidence[0].detail[0]'))
    assert.equal((await ann('POST DocumentReference', document)).status, 403)
    assert.equal((await ann('POST ', { resourceType: 'Bundle', type: 'transaction', entry })).status, 403)
    const sent = upstream.seen.slice(before).filter(it => it.body?.includes('of-bob'))
    assert.deepEqual(sent, [])
    assert.equal((await all('POST Condition', mine)).status, 201)
  })

  it('is never repeated if it may have been performed (GATEWAY-8)', async () => {
    upstream.answer((_request, response) => response.destroy())
    const before = upstream.seen.length
    assert.equal((await all('POST Condition', condition('x', 'ann'))).status, 503)
    assert.equal(upstream.seen.length - before, 1)
    assert.equal((await ann('GET Condition/ca')).status, 503)
    assert.equal(upstream.seen.length - before, 4, 'a read is tried three times')
  })
})

describe('URLs of the upstream', () => {
  it('appear nowhere in a response: location, links, references, narrative, escaped or not (GATEWAY-9)', async () => {
    const resource = patient('ann', {
      text: { status: 'generated', div: `<div><a href="${upstream.url}/Patient/ann">x</a></div>` },
      managingOrganization: { reference: `${upstream.url}/Organization/1` },
    })
    const escaped = JSON.stringify(resource).replaceAll('/', '\\/')
    for (const reader of [ann, all]) {
      upstream.answer((_request, response) =>
        response
          .writeHead(200, {
            'content-type': 'application/fhir+json',
            'content-location': `${upstream.url}/Patient/ann/_history/1`,
            server: 'HAPI at 127.0.0.1',
            via: upstream.url,
            'set-cookie': 'JSESSIONID=1',
          })
          .end(escaped),
      )
      const reply = await reader('GET Patient/ann')
      assert.equal(reply.status, 200)
      assert.doesNotMatch(JSON.stringify(reply.headers) + reply.text, /127\.0\.0\.1|JSESSION/)
      assert.deepEqual(reply.body.managingOrganization, { reference: `${BASE}/Organization/1` })
    }
  })

  it('are replaced in Location, in whatever form the upstream writes it', async () => {
    const path = new URL(upstream.url).pathname
    for (const location of [
      `${upstream.url}/Condition/n/_history/1`,
      `${path}/Condition/n/_history/1`,
      'Condition/n/_history/1',
    ]) {
      upstream.answerJson(condition('n', 'ann'), 201, { location })
      const reply = await ann('POST Condition', condition('x', 'ann'))
      assert.equal(reply.headers.location, `${BASE}/Condition/n/_history/1`)
    }
    upstream.answerJson(condition('n', 'ann'), 201, { location: 'http://elsewhere.test/Condition/n' })
    assert.equal((await ann('POST Condition', condition('x', 'ann'))).headers.location, undefined)
  })

  it('are replaced in a streamed response, wherever its chunks end', async () => {
    const many = Array.from({ length: 200 }, (_, at) =>
      condition(`c${at}`, 'ann', {
        subject: { reference: `${upstream.url}/Patient/ann` },
        note: [{ text: 'é€😀' }],
      }),
    )
    const text = Buffer.from(JSON.stringify(searchset(many)))
    upstream.answer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/fhir+json' })
      for (let at = 0; at < text.length; at += 37) response.write(text.subarray(at, at + 37))
      response.end()
    })
    const reply = await all('GET Condition')
    assert.equal(reply.body.entry?.length, 200)
    assert.equal(reply.text, JSON.stringify(searchset(many)).replaceAll(upstream.url, BASE))
  })
})

describe('a type that is stored elsewhere', () => {
  it('is never read from the upstream', async () => {
    upstream.answerJson(searchset([{ resourceType: 'AuditEvent', id: 'a' }, patient('ann')]))
    const before = upstream.seen.length
    for (const line of [
      'GET AuditEvent',
      'GET AuditEvent/a',
      'GET ?_type=Patient,AuditEvent',
      'GET Patient?_revinclude=AuditEvent:patient',
      'GET Patient/ann/AuditEvent',
    ])
      assert.equal((await all(line)).status, 404, line)
    assert.equal(upstream.seen.length, before)
    assert.deepEqual(readIds(await all('GET ?_type=Patient')), ['ann'])
    assert.equal((await ann('GET Patient?_revinclude=AuditEvent:patient')).status, 404)
  })
})

describe('metadata', () => {
  it('is that of the upstream with the security of the gateway and without refused features', async () => {
    const { body, text, status } = await fhir('GET metadata')
    assert.equal(status, 200)
    const rest = (body.rest as readonly Record<string, unknown>[])[0] as {
      readonly security: { readonly cors: boolean }
      readonly resource: readonly { readonly type: string }[]
    }
    assert.deepEqual(rest.resource, [
      {
        type: 'Patient',
        interaction: [{ code: 'read' }],
        operation: [
          { name: 'validate', definition: 'http://hl7.org/fhir/OperationDefinition/Resource-validate' },
          { name: 'everything', definition: 'http://x' },
        ],
      },
    ])
    assert.equal(rest.security.cors, true)
    assert.doesNotMatch(text, /none at all|shutdown|export|messaging|AuditEvent|xml/)
    assert.deepEqual(body.implementation, { description: 'FHIR R4 server behind Sallyport', url: BASE })
  })
})

describe('a Binary without securityContext', () => {
  const at = (lastUpdated: string) => ({ versionId: '1', lastUpdated })
  const binary = (meta: object, more: object = {}) => ({
    resourceType: 'Binary',
    id: 'b',
    meta,
    contentType: 'text/plain',
    data: 'eA==',
    ...more,
  })
  const document = (of: string, url: string, meta: object) => ({
    resourceType: 'DocumentReference',
    id: 'd',
    meta,
    status: 'current',
    subject: { reference: `Patient/${of}` },
    content: [{ attachment: { url } }],
  })
  const [early, late] = [at('2026-01-01T00:00:00Z'), at('2026-02-01T00:00:00Z')]
  const read = () => ann('GET Binary/b', undefined, { accept: 'application/fhir+json' })
  const holds = (stored: object, ...documents: object[]) =>
    upstream.answer((request, response) => {
      const line = `${request.method} ${request.url}`
      if (/DocumentReference(?:\?|\/_search)/.test(line)) json(response, searchset(documents))
      else if (line.endsWith('/Binary/b')) json(response, stored)
      else json(response, {}, 404)
    })

  it('is readable only through returned documents that refer to it', async () => {
    holds(binary(early), document('ann', `${upstream.url}/Binary/b`, late))
    assert.equal((await read()).status, 200)
    for (const [stored, shown] of [
      [binary(early), document('bob', 'Binary/b', late)],
      [binary(early), document('ann', 'Binary/other', late)],
      [binary(late), document('ann', 'Binary/b', early)],
      [binary({}), document('ann', 'Binary/b', late)],
      [binary(early), document('ann', 'Binary/b', {})],
      [binary(early, { securityContext: { reference: 'Patient/bob' } }), document('ann', 'Binary/b', late)],
      [binary(early, { id: 'other' }), document('ann', 'Binary/b', late)],
    ] as const) {
      holds(stored, shown)
      const reply = await read()
      assert.notEqual(reply.status, 200, JSON.stringify([stored, shown]))
      assert.doesNotMatch(reply.text, /eA==/)
    }
  })

  it('is refused in a new document under any URL, also that of the upstream', async () => {
    holds(binary(early))
    for (const url of ['Binary/b', `${upstream.url}/Binary/b`, `${BASE}/Binary/b`]) {
      const before = upstream.seen.length
      const { id: _, ...content } = document('ann', url, late)
      assert.equal(readIssue(await ann('POST DocumentReference', content)), NOT_WITHIN, url)
      assert.ok(upstream.seen.slice(before).every(it => !it.line.startsWith('POST /up/DocumentReference ')))
      assert.ok(
        upstream.seen.slice(before).every(it => it.line.startsWith('GET ')),
        url,
      )
    }
  })
})
