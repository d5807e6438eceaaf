import assert from 'node:assert/strict'
import { after, before, describe } from 'node:test'
import type { InjectOptions } from 'fastify'
import { BASE, type Fhir, NOT_WITHIN, readIssue } from '../../backends/sqlite/testing/fhir.ts'
import { needs, type TestTarget } from './target.ts'
import { startTwoPatients } from './two-patients.ts'

const HTML = Buffer.from('<script>alert(1)</script>\u0000\u00ff', 'latin1')
const JSON_ACCEPTED = { accept: 'application/fhir+json' }

/** Binaries, and the documents that name them. */
export function testBinaries(target: TestTarget): void {
  const { start } = target
  const it = needs(target)
  let fhir: Fhir
  let ann: Fhir
  let all: Fhir
  before(async () => {
    const started = await startTwoPatients(start)
    fhir = started.fhir
    ann = started.ann
    all = started.all
  })
  after(() => fhir.close())

  const binary = (id: string, of?: string) => ({
    resourceType: 'Binary',
    id,
    contentType: 'text/html',
    data: HTML.toString('base64'),
    ...(of !== undefined && { securityContext: { reference: `Patient/${of}` } }),
  })

  /** Sends and receives raw bytes. */
  const raw = (token: string, line: string, more: InjectOptions = {}) => {
    const [method = '', path = ''] = line.split(' ')
    return fhir.app.inject({
      method: method as 'GET',
      url: `/fhir/${path}`,
      ...more,
      headers: { authorization: `Bearer ${token}`, ...more.headers },
    })
  }

  describe('the content of a Binary', () => {
    before(async () => {
      assert.ok((await all('PUT Binary/page', binary('page', 'ann'))).status < 300)
    })

    needs(target, 'numbered-versions')(
      'is sent as stored unless the client asks for a FHIR format, and never runs in this origin (BINARY-1)',
      async () => {
        for (const token of ['ann', 'all'])
          for (const headers of [
            {},
            { accept: '*/*' },
            { accept: 'text/html' },
            { accept: 'image/png, */*;q=0.1' },
          ]) {
            const reply = await raw(token, 'GET Binary/page', { headers })
            assert.equal(reply.statusCode, 200)
            assert.deepEqual(reply.rawPayload, HTML)
            assert.equal(reply.headers['content-type'], 'text/html')
            assert.equal(reply.headers['content-disposition'], 'attachment; filename="page"')
            assert.match(String(reply.headers['content-security-policy']), /^sandbox; default-src 'none'/)
            assert.equal(reply.headers['x-content-type-options'], 'nosniff')
            assert.match(String(reply.headers.vary), /\bAccept\b/)
            assert.equal(reply.headers.etag, 'W/"1"')
          }
      },
    )

    it('is sent as a resource if the client asks for a FHIR format (BINARY-1)', async () => {
      for (const [query, headers] of [
        ['', JSON_ACCEPTED],
        ['', { accept: 'application/json, */*' }],
        ['?_format=json', {}],
        ['?_format=json', { accept: 'text/html' }],
      ] as const) {
        const reply = await ann(`GET Binary/page${query}`, undefined, headers)
        assert.deepEqual([reply.body.resourceType, reply.body.contentType], ['Binary', 'text/html'])
      }
      const xml = await raw('ann', 'GET Binary/page', { headers: { accept: 'application/fhir+xml' } })
      assert.equal(xml.statusCode, 406)
      const entry = [{ request: { method: 'GET', url: 'Binary/page' } }]
      const bundle = await ann('POST ', { resourceType: 'Bundle', type: 'batch', entry })
      assert.equal(bundle.body.entry?.[0]?.resource?.resourceType, 'Binary')
    })

    needs(target, 'numbered-versions')(
      'is described by HEAD, readable by version, and not sent again if the client has it',
      async () => {
        const head = await raw('ann', 'HEAD Binary/page')
        assert.deepEqual(
          [head.statusCode, head.headers['content-type'], head.headers['content-length'], head.body],
          [200, 'text/html', String(HTML.length), ''],
        )
        assert.deepEqual((await raw('ann', 'GET Binary/page/_history/1')).rawPayload, HTML)
        const known = await raw('ann', 'GET Binary/page', { headers: { 'if-none-match': 'W/"1"' } })
        assert.deepEqual([known.statusCode, known.body], [304, ''])
      },
    )

    it('is not readable outside the grant', async () => {
      for (const id of ['page', 'none']) {
        const reply = await raw('bob', `GET Binary/${id}`, { headers: { accept: 'text/html' } })
        assert.deepEqual([reply.statusCode, reply.json().issue[0].code], [403, 'forbidden'])
        assert.match(String(reply.headers['content-type']), /^application\/fhir\+json/)
      }
    })

    it('has no content type that could break a header', async () => {
      for (const contentType of [
        'text/html\r\nx-evil: 1',
        'nonsense',
        'text/html; a="\u00e9"',
        'text/html;;',
      ]) {
        await all('PUT Binary/odd', { ...binary('odd', 'ann'), contentType })
        const reply = await raw('ann', 'GET Binary/odd')
        if (reply.statusCode !== 200) continue
        assert.equal(reply.headers['content-type'], 'application/octet-stream', contentType)
        assert.equal(reply.headers['x-evil'], undefined)
      }
    })
  })

  describe('raw content that a client sends', () => {
    const send = (token: string, line: string, more: Readonly<Record<string, string>> = {}) =>
      raw(token, line, { headers: { 'content-type': 'application/pdf', ...more }, payload: HTML })

    needs(target, 'update-as-create')(
      'becomes a Binary of the patient that X-Security-Context names (BINARY-2)',
      async () => {
        const headers = { 'x-security-context': 'Patient/ann' }
        const made = await send('ann', 'POST Binary', headers)
        assert.equal(made.statusCode, 201, made.body)
        const { id, contentType, securityContext, data } = made.json()
        assert.deepEqual(
          [contentType, securityContext, data],
          ['application/pdf', { reference: 'Patient/ann' }, HTML.toString('base64')],
        )
        assert.deepEqual((await raw('ann', `GET Binary/${id}`)).rawPayload, HTML)
        const put = await send('ann', 'PUT Binary/chosen', headers)
        assert.deepEqual([put.statusCode, put.json().id], [201, 'chosen'])
        const parameters = await send('ann', 'PUT Binary/chosen', {
          ...headers,
          'content-type': 'text/plain; charset=utf-8',
        })
        assert.deepEqual(
          [parameters.statusCode, parameters.json().contentType],
          [200, 'text/plain; charset=utf-8'],
        )
      },
    )

    it('is refused for another patient, or without a patient', async () => {
      for (const headers of [
        {},
        { 'x-security-context': 'Patient/bob' },
        { 'x-security-context': 'Group/1' },
      ])
        for (const line of ['POST Binary', 'PUT Binary/new']) {
          const reply = await send('ann', line, headers)
          assert.deepEqual([reply.statusCode, reply.json().issue[0].code], [403, 'forbidden'], line)
        }
      assert.equal((await send('all', 'POST Binary')).statusCode, 201)
    })

    it('is refused for another resource type, and as FHIR in another format', async () => {
      assert.equal((await send('ann', 'POST Condition')).statusCode, 415)
      for (const type of ['application/fhir+xml', 'nonsense', 'text/html; a="'])
        assert.equal((await send('ann', 'POST Binary', { 'content-type': type })).statusCode, 415, type)
      const empty = await raw('ann', 'POST Binary', {
        headers: { 'content-type': 'application/pdf' },
        payload: '',
      })
      assert.equal(empty.statusCode, 400)
      const { id: _, ...mine } = binary('x', 'ann')
      assert.equal((await ann('POST Binary', mine)).status, 201)
      const resource = await ann('POST Binary', mine, { 'x-security-context': 'Patient/bob' })
      assert.deepEqual(resource.body.securityContext, { reference: 'Patient/ann' })
      assert.equal(readIssue(await fhir.as('creator')('POST Binary', binary('x', 'bob'))), NOT_WITHIN)
    })
  })

  const document = (id: string, of: string, url: string) => ({
    resourceType: 'DocumentReference',
    id,
    status: 'current',
    subject: { reference: `Patient/${of}` },
    content: [{ attachment: { contentType: 'text/html', url } }],
  })

  describe('a Binary without securityContext', () => {
    before(async () => {
      for (const it of [
        binary('open'),
        binary('absolute'),
        binary('secret'),
        binary('nobodys'),
        binary('bobs', 'bob'),
        document('d-open', 'ann', 'Binary/open'),
        document('d-absolute', 'ann', `${BASE}/Binary/absolute`),
        document('d-version', 'ann', 'Binary/nobodys/_history/1'),
        document('d-elsewhere', 'ann', 'http://other.test/fhir/Binary/nobodys'),
        document('d-secret', 'bob', 'Binary/secret'),
        document('d-bobs', 'ann', 'Binary/bobs'),
      ])
        assert.ok((await all(`PUT ${it.resourceType}/${it.id}`, it)).status < 300)
    })

    it('is readable through a DocumentReference within the grant (BINARY-3)', async () => {
      for (const id of ['open', 'absolute']) {
        assert.equal((await ann(`GET Binary/${id}`, undefined, JSON_ACCEPTED)).body.id, id)
        assert.deepEqual((await raw('ann', `GET Binary/${id}`)).rawPayload, HTML)
        assert.equal((await raw('ann', `HEAD Binary/${id}`)).statusCode, 200)
        assert.equal((await raw('bob', `GET Binary/${id}`)).statusCode, 403)
      }
      assert.deepEqual((await raw('bob', 'GET Binary/secret')).rawPayload, HTML)
      const entry = [{ request: { method: 'GET', url: 'Binary/open' } }]
      const bundle = await ann('POST ', { resourceType: 'Bundle', type: 'batch', entry })
      assert.equal(bundle.body.entry?.[0]?.resource?.id, 'open')
    })

    it('is not found through a document of another patient, or one that names another Binary, a version or another server', async () => {
      for (const id of ['secret', 'nobodys', 'bobs', 'none'])
        assert.equal(readIssue(await ann(`GET Binary/${id}`, undefined, JSON_ACCEPTED)), NOT_WITHIN, id)
      for (const token of ['vitals', 'searcher', 'creator', 'user'])
        assert.equal((await raw(token, 'GET Binary/open')).statusCode, 403, token)
    })

    it('is readable, and nothing else is permitted (BINARY-3)', async () => {
      assert.equal(readIssue(await ann('PUT Binary/open', binary('open', 'ann'))), NOT_WITHIN)
      assert.equal(readIssue(await ann('DELETE Binary/open')), NOT_WITHIN)
      assert.equal((await raw('ann', 'GET Binary/open/_history/1')).statusCode, 403)
      assert.equal((await ann('GET Binary?_id=open')).body.total, 0)
    })

    it('is not readable after the document is deleted or names another Binary', async () => {
      await all('PUT Binary/passing', binary('passing'))
      await all('PUT DocumentReference/d-passing', document('d-passing', 'ann', 'Binary/passing'))
      assert.equal((await raw('ann', 'GET Binary/passing')).statusCode, 200)
      await all('PUT DocumentReference/d-passing', document('d-passing', 'ann', 'Binary/open'))
      assert.equal((await raw('ann', 'GET Binary/passing')).statusCode, 403)
      await all('PUT DocumentReference/d-passing', document('d-passing', 'ann', 'Binary/passing'))
      await all('DELETE DocumentReference/d-passing')
      assert.equal((await raw('ann', 'GET Binary/passing')).statusCode, 403)
    })
  })

  describe('the id of a Binary that was named while it belonged to the patient', () => {
    const put = (url: string) => ({ method: 'PUT', url })

    /** Repeats the write until its time differs from that of the document. */
    async function writeLater(resource: { readonly id: string }, than: string): Promise<void> {
      for (let at = 0; at < 1_000; at++) {
        const data = Buffer.from(`${at}`).toString('base64')
        const { body } = await all(`PUT Binary/${resource.id}`, { ...resource, data })
        if (Date.parse(body.meta?.lastUpdated ?? '') > Date.parse(than)) return
      }
      assert.fail('The clock of the server does not move')
    }

    needs(target, 'update-as-create')(
      'gives no access to content that another caller stores under it (BINARY-3)',
      async () => {
        for (const id of ['overwritten', 'recreated']) {
          assert.equal((await ann(`PUT Binary/${id}`, binary(id, 'ann'))).status, 201)
          const made = await ann(`PUT DocumentReference/d-${id}`, document(`d-${id}`, 'ann', `Binary/${id}`))
          assert.equal(made.status, 201, made.text)
          if (id === 'recreated') assert.equal((await ann(`DELETE Binary/${id}`)).status, 204)
          await writeLater(binary(id), made.body.meta?.lastUpdated ?? '')
          assert.equal((await raw('ann', `GET Binary/${id}`)).statusCode, 403, id)
          const again = await ann(`PUT DocumentReference/d-${id}`, document(`d-${id}`, 'ann', `Binary/${id}`))
          assert.equal(readIssue(again), NOT_WITHIN, id)
          // A caller who may read every Binary may name one.
          const vouched = { ...document(`d-${id}`, 'ann', `Binary/${id}`), description: 'checked' }
          await all(`PUT DocumentReference/d-${id}`, vouched)
          assert.equal((await raw('ann', `GET Binary/${id}`)).statusCode, 200, id)
        }
      },
    )

    needs(target, 'transactions')(
      'gives access to content of the same transaction, in any order',
      async () => {
        const entries = [
          { resource: document('d-same', 'ann', 'Binary/same'), request: put('DocumentReference/d-same') },
          { resource: binary('same'), request: put('Binary/same') },
        ]
        for (const entry of [entries, entries.toReversed()]) {
          assert.equal(
            (await all('POST ', { resourceType: 'Bundle', type: 'transaction', entry })).status,
            200,
          )
          assert.equal((await raw('ann', 'GET Binary/same')).statusCode, 200)
        }
      },
    )
  })

  describe('a DocumentReference', () => {
    const patch = { 'content-type': 'application/json-patch+json' }

    needs(
      target,
      'conditional-writes',
      'transactions',
    )('must not name a Binary outside the grant of its author, existing or not (WRITE-10)', async () => {
      await ann('PUT DocumentReference/mine', document('mine', 'ann', 'http://other.test/x'))
      for (const url of [
        'Binary/secret',
        'Binary/nobodys',
        'Binary/bobs',
        'Binary/none',
        `${BASE}/Binary/secret`,
      ]) {
        const { id: _, ...content } = document('x', 'ann', url)
        const write = { op: 'replace', path: '/content/0/attachment/url', value: url }
        const entry = [{ resource: content, request: { method: 'POST', url: 'DocumentReference' } }]
        for (const reply of [
          await ann('POST DocumentReference', content),
          await ann('PUT DocumentReference/mine', document('mine', 'ann', url)),
          await ann('PUT DocumentReference/new', document('new', 'ann', url)),
          await ann('PUT DocumentReference?_id=mine', content),
          await ann('PATCH DocumentReference/mine', [write], patch),
          await ann('POST ', { resourceType: 'Bundle', type: 'transaction', entry }),
        ])
          assert.equal(readIssue(reply), NOT_WITHIN, url)
        const batch = await ann('POST ', { resourceType: 'Bundle', type: 'batch', entry })
        assert.match(batch.body.entry?.[0]?.response?.status ?? '', /^403/)
      }
      for (const id of ['secret', 'nobodys', 'bobs'])
        assert.equal((await raw('ann', `GET Binary/${id}`)).statusCode, 403, id)
    })

    needs(target, 'transactions')(
      'may name Binaries that its author may read or write, also of the same transaction (WRITE-10)',
      async () => {
        assert.equal((await ann('PUT Binary/own', binary('own', 'ann'))).status, 201)
        for (const url of [
          'Binary/own',
          'Binary/open',
          'http://other.test/fhir/Binary/secret',
          'urn:oid:1.2',
        ]) {
          const { id: _, ...content } = document('x', 'ann', url)
          assert.equal((await ann('POST DocumentReference', content)).status, 201, url)
        }
        const { id: _, ...creating } = document('x', 'ann', 'Binary/own')
        assert.equal((await fhir.as('creator')('POST DocumentReference', creating)).status, 201)
        const { id: __, ...content } = document('x', 'ann', 'urn:uuid:11111111-1111-4111-8111-111111111111')
        const { id: ___, ...made } = binary('x', 'ann')
        const chosen = document('chosen-d', 'ann', 'Binary/chosen-b')
        const entries = [
          { resource: content, request: { method: 'POST', url: 'DocumentReference' } },
          {
            fullUrl: 'urn:uuid:11111111-1111-4111-8111-111111111111',
            resource: made,
            request: { method: 'POST', url: 'Binary' },
          },
          { resource: chosen, request: { method: 'PUT', url: 'DocumentReference/chosen-d' } },
          { resource: binary('chosen-b', 'ann'), request: { method: 'PUT', url: 'Binary/chosen-b' } },
        ]
        for (const entry of [entries, entries.toReversed()]) {
          const reply = await ann('POST ', { resourceType: 'Bundle', type: 'transaction', entry })
          assert.equal(reply.status, 200, reply.text)
        }
        const stolen = [entries[2], { resource: binary('chosen-b'), request: entries[3]?.request }]
        const reply = await ann('POST ', { resourceType: 'Bundle', type: 'transaction', entry: stolen })
        assert.equal(readIssue(reply), NOT_WITHIN)
      },
    )

    it('names at most a limited number of Binaries', async () => {
      const attachments = Array.from({ length: 21 }, (_, at) => ({ attachment: { url: `Binary/own-${at}` } }))
      const { id: _, ...content } = { ...document('x', 'ann', ''), content: attachments }
      const reply = await ann('POST DocumentReference', content)
      assert.match(readIssue(reply), /^400 too-costly: .*more than 20 Binaries/)
    })
  })
}
