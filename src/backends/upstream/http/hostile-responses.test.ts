import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Resource } from '../../../fhir/index.ts'
import { condition, NOT_WITHIN, patient, readIssue, readNextLink } from '../../sqlite/testing/fhir.ts'
import { BROKEN, useHostileGateway } from '../testing/hostile-gateway.ts'
import { json, searchset } from '../testing/hostile-upstream.ts'

const { all, ann, fhir, upstream } = await useHostileGateway()

describe('a read for which the upstream returns another resource', () => {
  const REPLIES: Readonly<Record<string, [body: unknown, expected: string]>> = {
    'a resource of another patient': [condition('ca', 'bob'), NOT_WITHIN],
    'a resource with another id': [condition('other', 'ann'), BROKEN],
    'a resource of another type': [patient('ca'), BROKEN],
    'a Bundle': [searchset([condition('ca', 'ann')]), BROKEN],
    'an array': [[condition('ca', 'ann')], BROKEN],
    nothing: [null, BROKEN],
  }
  for (const [name, [body, expected]] of Object.entries(REPLIES))
    it(`is refused if the response is ${name}`, async () => {
      upstream.answerJson(body)
      assert.equal(readIssue(await ann('GET Condition/ca')), expected)
    })

  it('is shown in a batch without lastModified if the time is invalid', async () => {
    const headers = { 'last-modified': 'yesterday', etag: 'W/"1"' }
    upstream.answer((_request, response) => json(response, condition('ca', 'ann'), 200, headers))
    const entry = [{ request: { method: 'GET', url: 'Condition/ca' } }]
    const reply = await ann('POST', { resourceType: 'Bundle', type: 'batch', entry })
    assert.deepEqual(reply.body.entry?.[0]?.response, { status: '200 OK', etag: 'W/"1"' })
  })

  it('cannot be distinguished from an absent resource by status, body or number of requests', async () => {
    const shown: string[] = []
    for (const handler of [
      () => upstream.answerJson(condition('ca', 'bob')),
      () => upstream.answerJson({}, 404),
      () => upstream.answerJson({}, 410),
    ]) {
      handler()
      const before = upstream.seen.length
      const reply = await ann('GET Condition/ca')
      shown.push(`${reply.text} ${upstream.seen.length - before}`)
    }
    assert.equal(new Set(shown).size, 1)
  })
})

describe('an id for which the upstream returns nothing that can be checked', () => {
  const ODD: Readonly<Record<string, (response: import('node:http').ServerResponse) => void>> = {
    'raw content': it => it.writeHead(200, { 'content-type': 'application/pdf' }).end('%PDF'),
    XML: it => it.writeHead(200, { 'content-type': 'application/fhir+xml' }).end('<Condition/>'),
    'broken JSON': it =>
      it.writeHead(200, { 'content-type': 'application/fhir+json' }).end('{"resourceType":'),
    'another resource': it => json(it, condition('else', 'ann')),
    'a redirect': it => it.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
    'too much': it =>
      json(it, condition('odd', 'ann', { note: Array(10_000).fill({ text: 'x'.repeat(20) }) })),
    ...Object.fromEntries(
      [400, 403, 406, 429, 500, 501].map(status => [
        `its own ${status}`,
        (it: import('node:http').ServerResponse) => json(it, {}, status, { 'retry-after': '7' }),
      ]),
    ),
  }
  const LINES: readonly (readonly [string, unknown?, Readonly<Record<string, string>>?])[] = [
    ['GET Condition/ID'],
    ['GET Condition/ID/_history/1'],
    ['GET Condition/ID/_history'],
    ['DELETE Condition/ID'],
    ['PATCH Condition/ID', [], { 'content-type': 'application/json-patch+json' }],
    ['GET Patient/ID/$everything'],
  ]

  for (const [name, odd] of Object.entries(ODD))
    it(`is refused like an absent id: ${name} (GATEWAY-10)`, async () => {
      upstream.answer((request, response) =>
        request.url?.includes('/odd') ? odd(response) : json(response, {}, 404),
      )
      for (const [line, body, headers] of LINES) {
        const answers = []
        for (const id of ['odd', 'none']) {
          const before = upstream.seen.length
          const { status, text } = await ann(line.replace('ID', id), body, headers)
          // A second request looks for the part of a large resource that can be checked.
          const requests = name === 'too much' ? 'some' : upstream.seen.length - before
          answers.push(`${status} ${text.replaceAll(id, 'ID')} after ${requests}`)
        }
        assert.equal(answers[0], answers[1], line)
        assert.match(answers[0] ?? '', /^403 /)
      }
    })

  it('has the status of the upstream if every id has it, or if the grant names the id (GATEWAY-10)', async () => {
    upstream.answerJson({}, 429, { 'retry-after': '7' })
    const busy = await ann('GET Condition/odd')
    assert.deepEqual([busy.status, busy.headers['retry-after']], [429, '7'])
    upstream.answer((request, response) =>
      request.url?.endsWith('/Patient/ann') ? json(response, {}, 429) : json(response, {}, 404),
    )
    assert.equal((await ann('GET Patient/ann')).status, 429)
    assert.equal((await all('GET Condition/odd')).status, 404)
  })
})

// Compressed in advance, since this takes longer than the timeout of the gateway.
const BOMB = gzipSync(' '.repeat(10_000_000))

describe('a broken upstream', () => {
  const AWAY = '503 transient'
  const BREAKS: Readonly<Record<string, [(response: import('node:http').ServerResponse) => void, string]>> = {
    'broken JSON': [
      it => it.writeHead(200, { 'content-type': 'application/fhir+json' }).end('{"resourceType":'),
      '502',
    ],
    'a page': [it => it.writeHead(200, { 'content-type': 'text/html' }).end('<p>'), '502'],
    'a redirect': [it => it.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(), '502'],
    'its own 401': [it => json(it, {}, 401), '502'],
    'its own 403': [it => json(it, {}, 403), '502'],
    'a stack trace': [it => it.writeHead(500).end('at com.bob.Patient'), '502'],
    'no headers': [() => undefined, '504'],
    'slow bytes': [
      it => {
        it.writeHead(200, { 'content-type': 'application/fhir+json' })
        const timer = setInterval(() => it.write(' '), 20)
        it.on('close', () => clearInterval(timer))
      },
      '504',
    ],
    'an endless body': [
      it => {
        it.writeHead(200, { 'content-type': 'application/fhir+json' })
        const more = () => {
          while (!it.destroyed && it.write('x'.repeat(10_000)));
        }
        it.on('drain', more)
        more()
      },
      '502',
    ],
    'a bomb': [
      it =>
        it.writeHead(200, { 'content-type': 'application/fhir+json', 'content-encoding': 'gzip' }).end(BOMB),
      '502',
    ],
    'broken gzip': [
      it =>
        it.writeHead(200, { 'content-type': 'application/fhir+json', 'content-encoding': 'gzip' }).end('no'),
      '502',
    ],
    'a cut': [
      it => {
        it.writeHead(200, { 'content-type': 'application/fhir+json', 'content-length': '1000' }).write('{')
        setTimeout(() => it.destroy(), 10)
      },
      AWAY,
    ],
    'another 503': [it => json(it, {}, 503), AWAY],
  }
  for (const [name, [answer, expected]] of Object.entries(BREAKS))
    it(`that sends ${name} causes ${expected} with an OperationOutcome that contains nothing of the response (GATEWAY-12)`, async () => {
      upstream.answer((_request, response) => answer(response))
      const reply = await ann('GET Condition/ca')
      assert(readIssue(reply).startsWith(expected), readIssue(reply))
      assert.equal(reply.body.issue?.[0]?.code, 'transient')
      assert.doesNotMatch(reply.text, /\bbob\b|127\.0\.0\.1/)
      // The circuit breaker stays closed after one failure.
      upstream.answerJson(condition('ca', 'ann'))
      assert.equal((await ann('GET Condition/ca')).status, 200)
    })

  it('shows a limited caller only the codes of its OperationOutcome (GATEWAY-11)', async () => {
    const outcome = {
      resourceType: 'OperationOutcome',
      issue: [
        {
          severity: 'error',
          code: 'duplicate',
          details: { text: 'Patient/bob has it' },
          diagnostics: 'bob',
          expression: ['Condition.code', 'bob is here'],
        },
      ],
    }
    upstream.answerJson(outcome, 422)
    const limited = await ann('POST Condition', condition('x', 'ann'))
    assert.equal(readIssue(limited), '422 duplicate: The FHIR server does not accept this content.')
    assert.deepEqual(limited.body.issue?.[0]?.expression, ['Condition.code'])
    assert.doesNotMatch(limited.text, /\bbob\b/)
    assert.match((await all('POST Condition', condition('x', 'ann'))).text, /Patient\/bob has it/)
  })
})

describe('a read of the same bytes', () => {
  it('is checked for every caller, and again if the bytes change', async () => {
    upstream.answerJson(condition('ca', 'ann'))
    for (let at = 0; at < 3; at++) assert.equal((await ann('GET Condition/ca')).status, 200)
    assert.equal(readIssue(await fhir.as('bob')('GET Condition/ca')), NOT_WITHIN)
    assert.equal(readIssue(await ann('GET Condition/cb')), BROKEN, 'they are another resource')
    upstream.answerJson(condition('ca', 'bob'))
    assert.equal(readIssue(await ann('GET Condition/ca')), NOT_WITHIN)
    assert.equal((await fhir.as('bob')('GET Condition/ca')).status, 200)
  })

  it('gives no access to content that is not JSON', async () => {
    const body = JSON.stringify(condition('cc', 'ann'))
    upstream.answer((_request, response) =>
      response.writeHead(200, { 'content-type': 'application/fhir+json' }).end(body),
    )
    assert.equal((await ann('GET Condition/cc')).status, 200)
    upstream.answer((_request, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end(body),
    )
    assert.equal(readIssue(await ann('GET Condition/cc')), BROKEN)
  })

  it('has the version of its response', async () => {
    const first = { ...condition('cd', 'ann'), meta: { versionId: '7', lastUpdated: '2026-01-02T03:04:05Z' } }
    upstream.answerJson(first)
    const replies = [await ann('GET Condition/cd'), await ann('GET Condition/cd')]
    for (const { headers } of replies)
      assert.deepEqual([headers.etag, headers['last-modified']], ['W/"7"', 'Fri, 02 Jan 2026 03:04:05 GMT'])
    upstream.answerJson(first, 200, { etag: 'W/"8"' })
    assert.equal((await ann('GET Condition/cd')).headers.etag, 'W/"8"')
  })
})

describe('a page that is too large to be checked', () => {
  const note = Array.from({ length: 5_000 }, () => ({ text: 'x'.repeat(20) }))
  const large = condition('large', 'ann', { note })
  const some = ['a', 'b', 'c'].map(id => condition(id, 'ann', { note: [{ text: 'x'.repeat(30_000) }] }))

  /** Answers with pages of `_count` resources. */
  function serve(resources: readonly Resource[], appliesCount = true) {
    upstream.answer((request, response) => {
      const { searchParams } = new URL(request.url ?? '', upstream.url)
      const ids = searchParams.get('_id')?.split(',')
      const found = resources.filter(({ id = '' }) => !ids || ids.includes(id))
      const from = Number(searchParams.get('from'))
      const to = from + (appliesCount ? Number(searchParams.get('_count') ?? 10) : found.length)
      const next = `${upstream.url}/Condition?from=${to}&_count=${to - from}`
      const entry = found
        .slice(from, to)
        .map(resource => ({ fullUrl: 'urn:x', resource, search: { mode: 'match' } }))
      json(
        response,
        searchset([], { entry, ...(to < found.length && { link: [{ relation: 'next', url: next }] }) }),
      )
    })
  }

  async function everyPage(first: string): Promise<readonly (string | undefined)[]> {
    const ids: (string | undefined)[] = []
    for (let url: string | undefined = first; url !== undefined; ) {
      const reply = await ann(`GET ${url}`)
      assert.equal(reply.status, 200, reply.text.slice(0, 500))
      ids.push(...(reply.body.entry ?? []).map(it => it.resource?.id))
      url = readNextLink(reply)
    }
    return ids
  }

  for (const path of ['Condition?_count=10', 'Condition', 'Condition/_history?_count=10'])
    it(`is requested again with fewer resources: ${path}`, async () => {
      serve([...some, condition('d', 'ann'), condition('e', 'bob')])
      assert.deepEqual(await everyPage(path), ['a', 'b', 'c', 'd'])
    })

  it('causes an error if the upstream ignores _count', async () => {
    serve([condition('first', 'ann'), large], false)
    const text =
      '400 too-costly: Cannot use a page of the upstream FHIR server, even with _count=1: it is larger than 100000 bytes'
    assert.equal(readIssue(await ann('GET Condition')), text)
  })

  it('causes an error if one resource is too large even without its long strings', async () => {
    serve([condition('first', 'ann'), large, ...some])
    assert.match(
      readIssue(await ann('GET Condition?_id=large')),
      /^400 too-costly: .* even with _count=1: it is larger/,
    )
  })
})
