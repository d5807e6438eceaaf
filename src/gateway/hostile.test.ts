import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type Access, fullAccess } from '../consent/index.ts'
import {
  BASE,
  condition,
  type Fhir,
  guardOf,
  idsOf,
  issueOf,
  nextOf,
  observation,
  patient,
  patientAccess,
} from '../fhir-server/testing/fhir.ts'
import { type HostileUpstream, json, searchset, startHostile } from './testing/hostile-upstream.ts'
import { startGateway } from './testing/start-gateway.ts'

const NOT_WITHIN = '403 forbidden: Not within the granted patient, user or filter.'
const BROKEN = '502 transient: The FHIR server behind this one gave an answer that cannot be used.'
const vitals: Access = {
  reach: type => (type === 'Observation' ? [{ patient: 'ann', query: [['category', 'vital-signs']] }] : []),
}

let upstream: HostileUpstream
let fhir: Fhir
let ann: Fhir
let all: Fhir
before(async () => {
  upstream = await startHostile()
  fhir = await startGateway(upstream.url, {
    guard: guardOf({ all: fullAccess, ann: patientAccess('ann'), bob: patientAccess('bob'), vitals }),
    timeoutMs: 800,
    responseLimit: 100_000,
    narrowing: 'parameter',
  })
  ann = fhir.as('ann')
  all = fhir.as('all')
})
after(async () => {
  await fhir.close()
  await upstream.close()
})
beforeEach(() => upstream.answerJson({}, 404))

const asked = () => decodeURIComponent(upstream.seen.at(-1)?.line ?? '')

describe('a search that the upstream answers with more than was asked', () => {
  const mixed = [condition('ca', 'ann'), condition('cb', 'bob'), patient('bob'), observation('oa', 'ann')]

  it('is narrowed before it is sent, by a parameter of its own beside those of the caller', async () => {
    upstream.answerJson(searchset([]))
    await ann('GET Condition?patient=bob&_sort=-recorded-date')
    assert.equal(asked(), 'GET /up/Condition?patient=bob&_sort=-recorded-date&patient=Patient/ann')
    await ann('GET Patient?_id=ann,bob')
    assert.equal(asked(), 'GET /up/Patient?_id=ann,bob&_id=ann')
    await fhir.as('vitals')('GET Observation?code=x')
    assert.equal(asked(), 'GET /up/Observation?code=x&patient=Patient/ann&category=vital-signs')
    await ann('GET Patient/ann/Condition')
    assert.equal(asked(), 'GET /up/Condition?patient=Patient/ann&patient=Patient/ann')
  })

  it('is posted where it was posted', async () => {
    upstream.answerJson(searchset([]))
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    await ann('POST Condition/_search?code=a', 'patient=bob', form)
    assert.equal(upstream.seen.at(-1)?.line, 'POST /up/Condition/_search')
    assert.equal(
      decodeURIComponent(upstream.seen.at(-1)?.body ?? ''),
      'code=a&patient=bob&patient=Patient/ann',
    )
  })

  it('is filtered, and counts what is left unless the upstream says that there is more', async () => {
    upstream.answerJson(searchset(mixed, { total: 9999, id: 'x', meta: { tag: [{ code: 'bob' }] } }))
    const reply = await ann('GET Condition')
    assert.deepEqual([reply.status, idsOf(reply), reply.body.total], [200, ['ca'], undefined])
    assert.doesNotMatch(reply.text, /bob|9999/)
    upstream.answerJson(searchset(mixed, { total: 4 }))
    assert.equal((await ann('GET Condition')).body.total, 1)
  })

  it('gives no total of which it has not seen all', async () => {
    const link = [{ relation: 'next', url: `${upstream.url}?_getpages=abc` }]
    upstream.answerJson(searchset([condition('ca', 'ann')], { total: 9999, link }))
    const reply = await ann('GET Condition')
    assert.deepEqual([idsOf(reply), reply.body.total], [['ca'], undefined])
  })

  it('is counted here where a count was asked for, and the count of the upstream thrown away', async () => {
    upstream.answerJson(searchset(mixed, { total: 9999 }))
    const reply = await ann('GET Condition?_summary=count')
    assert.deepEqual([reply.body.total, reply.body.entry], [1, undefined])
    assert.doesNotMatch(asked(), /_summary/)
  })

  it('loses includes that nothing shown leads to, and outcomes', async () => {
    const own = observation('oa', 'ann', { performer: [{ reference: 'Practitioner/seen' }] })
    upstream.answerJson(
      searchset([], {
        entry: [
          { resource: own, search: { mode: 'match' } },
          { resource: { resourceType: 'Practitioner', id: 'seen' }, search: { mode: 'include' } },
          { resource: { resourceType: 'Practitioner', id: 'of-bob' }, search: { mode: 'include' } },
          { resource: patient('bob'), search: { mode: 'include' } },
          { resource: { resourceType: 'OperationOutcome', issue: [] }, search: { mode: 'outcome' } },
        ],
      }),
    )
    const reply = await ann('GET Observation?_include=Observation:performer')
    assert.deepEqual([idsOf(reply), idsOf(reply, 'include')], [['oa'], ['seen']])
    // What can bring nothing that is reached is not asked for.
    await fhir.as('vitals')('GET Observation?_include=Observation:subject')
    assert.doesNotMatch(asked(), /_include/)
  })

  it('brings nothing along that was not asked for', async () => {
    const entry = [{ resource: condition('ca', 'ann'), search: { mode: 'include' } }]
    upstream.answerJson(searchset([], { entry }))
    assert.deepEqual(idsOf(await ann('GET Observation'), 'include'), [])
  })

  it('does not trust _elements: the whole resource is judged, and then cut', async () => {
    upstream.answerJson(searchset([condition('ca', 'ann'), { resourceType: 'Condition', id: 'bare' }]))
    const reply = await ann('GET Condition?_elements=code')
    assert.doesNotMatch(asked(), /_elements/)
    assert.deepEqual(idsOf(reply), ['ca'])
    assert.deepEqual(Object.keys(reply.body.entry?.[0]?.resource ?? {}), [
      'resourceType',
      'id',
      'code',
      'meta',
    ])
  })

  it('hides what contains another patient', async () => {
    const contained = [{ ...condition('inner', 'bob') }]
    upstream.answerJson(searchset([condition('ca', 'ann', { contained }), condition('cc', 'ann')]))
    assert.deepEqual(idsOf(await ann('GET Condition')), ['cc'])
  })

  it('refuses a parameter that it does not know, which might switch the narrowing off', async () => {
    const before = upstream.seen.length
    for (const query of [
      '_getpages=1',
      '_query=x',
      '_filter=a eq b',
      '_list=1',
      '_nothing=1',
      '_text=a',
      '_content=a',
    ])
      assert.equal((await ann(`GET Condition?${query}`)).status, 400, query)
    assert.equal(upstream.seen.length, before)
  })
})

describe('a read that the upstream answers with something else', () => {
  const REPLIES: Readonly<Record<string, [body: unknown, expected: string]>> = {
    "another patient's": [condition('ca', 'bob'), NOT_WITHIN],
    'another id': [condition('other', 'ann'), BROKEN],
    'another type': [patient('ca'), BROKEN],
    'a Bundle': [searchset([condition('ca', 'ann')]), BROKEN],
    'an array': [[condition('ca', 'ann')], BROKEN],
    nothing: [null, BROKEN],
  }
  for (const [name, [body, expected]] of Object.entries(REPLIES))
    it(`is refused with ${name}`, async () => {
      upstream.answerJson(body)
      assert.equal(issueOf(await ann('GET Condition/ca')), expected)
    })

  it('is not told apart by status, body or requests from what is absent', async () => {
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

// Made before: it takes longer than the gateway waits.
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
    it(`that gives ${name} is a ${expected} with an OperationOutcome, and nothing of it is shown`, async () => {
      upstream.answer((_request, response) => answer(response))
      const reply = await ann('GET Condition/ca')
      assert(issueOf(reply).startsWith(expected), issueOf(reply))
      assert.equal(reply.body.issue?.[0]?.code, 'transient')
      assert.doesNotMatch(reply.text, /bob|127\.0\.0\.1/)
      // The next request finds it well again, whatever the breaker thought.
      upstream.answerJson(condition('ca', 'ann'))
      assert.equal((await ann('GET Condition/ca')).status, 200)
    })

  it('has only its codes passed on to a limited caller', async () => {
    const said = {
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
    upstream.answerJson(said, 422)
    const limited = await ann('POST Condition', condition('x', 'ann'))
    assert.equal(issueOf(limited), '422 duplicate: The FHIR server does not accept this content.')
    assert.deepEqual(limited.body.issue?.[0]?.expression, ['Condition.code'])
    assert.doesNotMatch(limited.text, /bob/)
    assert.match((await all('POST Condition', condition('x', 'ann'))).text, /Patient\/bob has it/)
  })
})

describe('what goes to the upstream', () => {
  it('is neither the token nor the cookies nor the forwarding headers of the caller', async () => {
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
    assert.deepEqual(Object.keys(headers).toSorted(), [
      'accept',
      'accept-encoding',
      'connection',
      'host',
      'x-request-id',
    ])
    assert.equal(headers['x-request-id'], 'my-request')
  })

  it('is what was judged: of a name that stands twice the last one, and decimals with all digits', async () => {
    upstream.answerJson(observation('new', 'ann'), 201)
    const { id: _, ...mine } = observation('x', 'ann', { valueQuantity: { value: 1 } })
    const text = JSON.stringify(mine).replace('"value":1', '"value":1.50')
    await ann('POST Observation', text.replace('{', '{"subject":{"reference":"Patient/bob"},'))
    const sent = upstream.seen.at(-1)?.body ?? ''
    assert.match(sent, /"value":1\.50/)
    assert.doesNotMatch(sent, /bob/)
  })

  it('has the address of the upstream in the place of ours', async () => {
    upstream.answerJson(condition('new', 'ann'), 201)
    const { id: _, ...mine } = condition('x', 'ann', { subject: { reference: `${BASE}/Patient/ann` } })
    assert.equal((await ann('POST Condition', mine)).status, 201)
    assert.match(upstream.seen.at(-1)?.body ?? '', new RegExp(`"${upstream.url}/Patient/ann"`))
  })

  it('is never tried twice where it may have been done', async () => {
    upstream.answer((_request, response) => response.destroy())
    const before = upstream.seen.length
    assert.equal((await all('POST Condition', condition('x', 'ann'))).status, 503)
    assert.equal(upstream.seen.length - before, 1)
    assert.equal((await ann('GET Condition/ca')).status, 503)
    assert.equal(upstream.seen.length - before, 4, 'a read is tried three times')
  })
})

describe('addresses of the upstream', () => {
  it('are nowhere in an answer: location, links, references, narrative, escaped or not', async () => {
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

  it('are ours in Location, whichever way the upstream writes it', async () => {
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

  it('are replaced in what passes by, wherever it is cut', async () => {
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

describe('paging links', () => {
  const page = (next: string) =>
    searchset([condition('ca', 'ann'), condition('cb', 'bob')], { link: [{ relation: 'next', url: next }] })

  it('of any make are followed by the grant that got them, and judged anew', async () => {
    for (const next of [
      `${upstream.url}?_getpages=secret-id&_bundletype=searchset`,
      '/up?page=2',
      `${upstream.url}/x/y/z`,
    ]) {
      upstream.answerJson(page(next))
      const first = await ann('GET Condition?code=a')
      const link = nextOf(first) ?? ''
      assert(link.startsWith(`${BASE}/Condition?_gateway-page=`), link)
      assert.doesNotMatch(first.text, /_getpages|secret-id|page=2|127/)
      const second = await ann(`GET ${link}`)
      assert.deepEqual([second.status, idsOf(second)], [200, ['ca']])
      assert.equal(
        upstream.seen.at(-1)?.line,
        `GET ${new URL(next, upstream.url).href.slice(new URL(upstream.url).origin.length)}`,
      )
    }
  })

  it('that lead elsewhere are not followed', async () => {
    upstream.answerJson(page('http://169.254.169.254/latest'))
    assert.equal(issueOf(await ann('GET Condition')), BROKEN)
  })

  it('are of no use when changed, or at another address', async () => {
    upstream.answerJson(page(`${upstream.url}?_getpages=1`))
    const link = nextOf(await ann('GET Condition')) ?? ''
    assert.equal((await ann(`GET ${link.replace('/Condition?', '/Observation?')}`)).status, 400)
    assert.equal((await ann(`GET ${link}&patient=bob`)).status, 400)
    assert.equal((await ann(`GET ${link.slice(0, -3)}AAA`)).status, 400)
    assert.equal((await ann('GET Condition?_gateway-page=junk')).status, 400)
  })
})

describe('what is kept elsewhere', () => {
  it('is never taken from the upstream', async () => {
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
    assert.deepEqual(idsOf(await all('GET ?_type=Patient')), ['ann'])
    assert.equal((await ann('GET Patient?_revinclude=AuditEvent:patient')).status, 404)
  })
})

describe('metadata', () => {
  it("is the upstream's with our security and without what is refused", async () => {
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
        operation: [{ name: 'everything', definition: 'http://x' }],
      },
    ])
    assert.equal(rest.security.cors, true)
    assert.doesNotMatch(text, /none at all|shutdown|export|messaging|AuditEvent|xml/)
    assert.deepEqual(body.implementation, { description: 'FHIR R4 server behind Sallyport', url: BASE })
  })
})
