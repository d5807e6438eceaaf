import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { InjectOptions } from 'fastify'
import { type Fhir, issueOf, type StartFhir } from './fhir.ts'
import { startTwoPatients } from './two-patients.ts'

const NOT_WITHIN = '403 forbidden: Not within the granted patient, user or filter.'
const HTML = Buffer.from('<script>alert(1)</script>\u0000\u00ff', 'latin1')
const JSON_ACCEPTED = { accept: 'application/fhir+json' }

/** Binaries of any server that is guarded: the embedded one, and the gateway. */
export function binarySuite(start: StartFhir): void {
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
    ...{ resourceType: 'Binary', id, contentType: 'text/html', data: HTML.toString('base64') },
    ...(of !== undefined && { securityContext: { reference: `Patient/${of}` } }),
  })

  /** Sends and gets bytes as they are. */
  const raw = (token: string, line: string, more: InjectOptions = {}) => {
    const [method = '', path = ''] = line.split(' ')
    return fhir.app.inject({
      ...{ method: method as 'GET', url: `/fhir/${path}`, ...more },
      headers: { authorization: `Bearer ${token}`, ...more.headers },
    })
  }

  describe('the content of a Binary', () => {
    before(async () => {
      assert.equal((await all('PUT Binary/page', binary('page', 'ann'))).status, 201)
    })

    it('is sent as it is unless a FHIR format is asked for, and never runs in our origin', async () => {
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
    })

    it('is the resource where a FHIR format is asked for', async () => {
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

    it('is told by HEAD, by a version, and not again where it is known', async () => {
      const head = await raw('ann', 'HEAD Binary/page')
      assert.deepEqual(
        [head.statusCode, head.headers['content-type'], head.headers['content-length'], head.body],
        [200, 'text/html', String(HTML.length), ''],
      )
      assert.deepEqual((await raw('ann', 'GET Binary/page/_history/1')).rawPayload, HTML)
      const known = await raw('ann', 'GET Binary/page', { headers: { 'if-none-match': 'W/"1"' } })
      assert.deepEqual([known.statusCode, known.body], [304, ''])
    })

    it('is told to nobody else', async () => {
      for (const id of ['page', 'none']) {
        const reply = await raw('bob', `GET Binary/${id}`, { headers: { accept: 'text/html' } })
        assert.deepEqual([reply.statusCode, reply.json().issue[0].code], [403, 'forbidden'])
        assert.match(String(reply.headers['content-type']), /^application\/fhir\+json/)
      }
    })

    it('has no type that could end a header', async () => {
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

  describe('bytes that are sent', () => {
    const send = (token: string, line: string, more: Readonly<Record<string, string>> = {}) =>
      raw(token, line, { headers: { 'content-type': 'application/pdf', ...more }, payload: HTML })

    it('become a Binary of the patient that X-Security-Context names', async () => {
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
    })

    it('are refused for another patient, or for none', async () => {
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

    it('are no resource of another type, and no resource of theirs in another format', async () => {
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
      assert.equal(issueOf(await fhir.as('creator')('POST Binary', binary('x', 'bob'))), NOT_WITHIN)
    })
  })
}
