import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import type { Resource } from '../../../fhir/index.ts'
import {
  condition,
  createAuthenticator,
  NOT_WITHIN,
  patient,
  patientAccess,
  type Reply,
  readIds,
  readIssue,
  readNextLink,
} from '../../sqlite/testing/fhir.ts'
import { startHapi } from '../testing/hapi/start-hapi.ts'
import { useHostileGateway } from '../testing/hostile-gateway.ts'
import { json, searchset } from '../testing/hostile-upstream.ts'
import { startGateway } from '../testing/start-gateway.ts'

const { all, ann, fhir, upstream } = await useHostileGateway()

const BYTES = Buffer.from(Array.from({ length: 150_000 }, (_, at) => (at * 7919) % 256))
const DATA = BYTES.toString('base64')

function letter(id: string, of: string, data = DATA): Resource {
  return {
    resourceType: 'DocumentReference',
    id,
    meta: { versionId: '3', lastUpdated: '2026-01-02T03:04:05Z' },
    status: 'current',
    subject: { reference: `Patient/${of}` },
    content: [{ attachment: { contentType: 'application/pdf', data } }],
  }
}

const scan = (id: string, of: string) => ({
  resourceType: 'Binary',
  id,
  meta: { versionId: '1' },
  contentType: 'application/pdf',
  securityContext: { reference: `Patient/${of}` },
  data: DATA,
})

/** Serves these resources by id and as pages of `_count`, with their versions. */
function serve(...resources: readonly Resource[]): void {
  upstream.answer((request, response) => {
    const url = new URL(request.url ?? '', upstream.url)
    const [, , , id] = url.pathname.split('/')
    if (id !== undefined && id !== '_history') {
      const found = resources.find(it => it.id === id)
      return json(response, found ?? {}, found ? 200 : 404, { etag: `W/"${found?.meta?.versionId}"` })
    }
    const from = Number(url.searchParams.get('from'))
    const count = Number(url.searchParams.get('_count') ?? 10)
    const next = `${upstream.url}/DocumentReference?from=${from + count}&_count=${count}`
    const entry = resources.slice(from, from + count).map(resource => ({
      fullUrl: 'urn:x',
      resource,
      search: { mode: 'match' },
      request: { method: 'PUT', url: `${resource.resourceType}/${resource.id}` },
      response: {},
    }))
    const link = from + count < resources.length ? [{ relation: 'next', url: next }] : []
    return json(response, searchset([], { entry, link }))
  })
}

describe("a resource of the caller's patient that is too large for memory", () => {
  it('is on its page without its attachments, and named (GATEWAY-36)', async () => {
    serve(
      letter('small', 'ann', 'AAAA'),
      letter('other', 'bob'),
      letter('large', 'ann'),
      letter('last', 'ann', 'AAAA'),
    )
    const reply = await ann('GET DocumentReference')
    assert.equal(reply.status, 200, reply.text.slice(0, 500))
    assert.deepEqual(readIds(reply), ['small', 'large', 'last'])
    const [, shown, , outcome] = (reply.body.entry ?? []).map(it => it.resource)
    assert.deepEqual(shown?.content, [{ attachment: { contentType: 'application/pdf' } }])
    assert.match(JSON.stringify(shown?.meta), /"code":"SUBSETTED"/)
    assert.deepEqual(outcome?.issue, [
      {
        severity: 'information',
        code: 'too-long',
        details: {
          text: 'Too large for a page, and shown without attachments: DocumentReference/large. Read each by its id.',
        },
        diagnostics:
          'Too large for a page, and shown without attachments: DocumentReference/large. Read each by its id.',
      },
    ])
    assert.doesNotMatch(reply.text, /other/)
    assert.equal(reply.body.total, 3)
  })

  it('is counted, and on exactly one page, none of which is empty (GATEWAY-36)', async () => {
    const many = Array.from({ length: 9 }, (_, at) => letter(`d${at}`, 'ann', at === 8 ? DATA : 'AAAA'))
    serve(...many)
    assert.equal((await ann('GET DocumentReference?_summary=count')).body.total, 9)
    const ids: unknown[] = []
    for (let url: string | undefined = 'DocumentReference?_count=4'; url !== undefined; ) {
      const reply = await ann(`GET ${url}`)
      assert.ok(readIds(reply).length > 0)
      ids.push(...readIds(reply))
      url = readNextLink(reply)
    }
    assert.deepEqual(
      ids,
      many.map(it => it.id),
    )
  })

  it('is in a history', async () => {
    serve(letter('large', 'ann'))
    const reply = await ann('GET DocumentReference/_history')
    assert.deepEqual(
      reply.body.entry?.map(it => it.resource?.id),
      ['large'],
    )
    assert.match(reply.text, /SUBSETTED/)
  })

  it('is streamed as it is stored if it is read by its id (GATEWAY-36)', async () => {
    serve(letter('large', 'ann'))
    const reply = await ann('GET DocumentReference/large')
    assert.deepEqual([reply.status, reply.headers.etag], [200, 'W/"3"'])
    assert.equal(reply.text, JSON.stringify(letter('large', 'ann')))
    const head = await ann('HEAD DocumentReference/large')
    assert.deepEqual([head.status, head.text], [200, ''])
    const known = await ann('GET DocumentReference/large', undefined, { 'if-none-match': 'W/"3"' })
    assert.equal(known.status, 304)
    const parts = await ann('GET DocumentReference/large?_elements=status')
    assert.deepEqual([parts.status, parts.body.status, parts.text.length < 1_000], [200, 'current', true])
  })

  it('is refused like an absent one to a caller who may not see it (GATEWAY-36)', async () => {
    serve(letter('large', 'bob'))
    for (const id of ['large', 'none'])
      assert.equal(readIssue(await ann(`GET DocumentReference/${id}`)), NOT_WITHIN)
    assert.deepEqual(readIds(await ann('GET DocumentReference')), [])
    assert.equal((await ann('GET DocumentReference')).body.entry, undefined)
  })

  it('is not sent if it has changed since it was checked, or has no version (GATEWAY-36)', async () => {
    const versions = ['W/"3"', 'W/"4"']
    upstream.answer((_request, response) =>
      json(response, letter('large', 'ann'), 200, { etag: versions.shift() ?? '' }),
    )
    assert.equal(
      readIssue(await ann('GET DocumentReference/large')),
      '412 conflict: Cannot read: the resource was changed at the same time. Send the request again',
    )
    upstream.answerJson(letter('large', 'ann'))
    assert.match(
      readIssue(await ann('GET DocumentReference/large')),
      /^400 too-costly: Cannot read: .* too large/,
    )
  })

  it('is named in a batch, which cannot contain it', async () => {
    serve(letter('large', 'ann'))
    const entry = [{ request: { method: 'GET', url: 'DocumentReference/large' } }]
    const reply = await ann('POST', { resourceType: 'Bundle', type: 'batch', entry })
    assert.match(
      reply.body.entry?.[0]?.response?.outcome?.issue?.[0]?.details.text ?? '',
      /^Cannot read DocumentReference\/large in a Bundle: it is too large/,
    )
  })

  it('is not patched, because its content is not in memory', async () => {
    serve(letter('large', 'ann'))
    const patch = [{ op: 'replace', path: '/status', value: 'superseded' }]
    const before = upstream.seen.length
    const reply = await ann('PATCH DocumentReference/large', patch, {
      'content-type': 'application/json-patch+json',
    })
    assert.match(readIssue(reply), /^400 too-costly: Cannot patch DocumentReference\/large: it is too large/)
    assert.ok(upstream.seen.slice(before).every(it => it.line.startsWith('GET')))
  })

  it('is sent as its content if it is a Binary, to every caller who may read it (GATEWAY-36)', async () => {
    serve(scan('large', 'ann'))
    for (const token of ['ann', 'all']) {
      const reply = await fhir.app.inject({
        url: '/fhir/Binary/large',
        headers: { authorization: `Bearer ${token}` },
      })
      assert.deepEqual([reply.statusCode, reply.headers['content-type']], [200, 'application/pdf'])
      assert.equal(hash(reply.rawPayload), hash(BYTES))
    }
    assert.equal((await all('GET Binary/large', undefined, { accept: 'application/json' })).body.data, DATA)
    serve(scan('large', 'bob'))
    assert.equal(readIssue(await ann('GET Binary/large')), NOT_WITHIN)
  })

  it('is checked by every reference that it has, however long the other strings are', async () => {
    const other = { ...letter('large', 'ann'), context: { related: [{ reference: 'Patient/bob' }] } }
    const contained = { ...letter('large', 'ann'), contained: [condition('x', 'bob')] }
    for (const resource of [other, contained]) {
      serve(resource)
      const reply = await ann('GET DocumentReference/large')
      const small = { ...resource, content: letter('large', 'ann', 'AAAA').content }
      serve(small)
      assert.equal(reply.status, (await ann('GET DocumentReference/large')).status)
    }
  })
})

describe('a document of 25 MB, with the default limits', () => {
  it('is found, counted, read by its id, and on the last page', async () => {
    const scanned = letter('scanned', 'ann', 'AAAA'.repeat((25 * 1024 * 1024) / 4))
    const documents = [...Array.from({ length: 34 }, (_, at) => letter(`d${at}`, 'ann', 'AAAA')), scanned]
    const defaults = await startGateway(upstream.url, {
      guard: createAuthenticator({ ann: patientAccess('ann') }),
      narrowing: 'parameter',
    })
    try {
      serve(...documents)
      const reader = defaults.as('ann')
      const found = await reader('GET DocumentReference?_count=50')
      assert.deepEqual([found.body.total, readIds(found).length], [35, 35])
      assert.equal((await reader('GET DocumentReference?_summary=count')).body.total, 35)
      const pages: (readonly unknown[])[] = []
      for (let url: string | undefined = 'DocumentReference?_count=17'; url !== undefined; ) {
        const reply: Reply = await reader(`GET ${url}`)
        pages.push(readIds(reply))
        url = readNextLink(reply)
      }
      assert.deepEqual([pages.map(({ length }) => length), pages.at(-1)], [[17, 17, 1], ['scanned']])
      const read = await reader('GET DocumentReference/scanned')
      assert.deepEqual(
        [read.status, hash(Buffer.from(read.text))],
        [200, hash(Buffer.from(JSON.stringify(scanned)))],
      )
    } finally {
      await defaults.close()
    }
  })
})

describe('many large documents, in front of HAPI', () => {
  it('are on pages of a number of bytes, each document once, and no page is requested twice', async () => {
    const hapi = await startHapi()
    const gateway = await startGateway(hapi.url, {
      guard: createAuthenticator({ ann: patientAccess('ann') }),
      profile: 'hapi',
      responseLimit: 4 * 1024 * 1024,
    })
    try {
      const put = (resource: Resource) =>
        fetch(`${hapi.url}/${resource.resourceType}/${resource.id}`, {
          method: 'PUT',
          headers: { 'content-type': 'application/fhir+json' },
          body: JSON.stringify(resource),
        })
      await put(patient('ann'))
      const ids = Array.from({ length: 20 }, (_, at) => `d${at}`)
      for (const id of ids) assert.equal((await put(letter(id, 'ann', 'AAAA'.repeat(75_000)))).status, 201)
      const reader = gateway.as('ann')
      assert.equal((await reader('GET DocumentReference?_summary=count')).body.total, ids.length)
      const before = hapi.seen.length
      const found: unknown[] = []
      let pages = 0
      for (let url: string | undefined = 'DocumentReference?_count=40'; url !== undefined; pages++) {
        const reply: Reply = await reader(`GET ${url}`)
        found.push(...readIds(reply))
        url = readNextLink(reply)
      }
      assert.deepEqual(found.toSorted(), ids.toSorted())
      const counts = hapi.seen.slice(before).map(it => Number(new Map(it.params).get('_count')))
      assert.deepEqual([pages, counts], [4, [41, 8, 8, 8]])
    } finally {
      await gateway.close()
      await hapi.close()
    }
  })
})

function hash(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
