import assert from 'node:assert/strict'
import { after, before, describe } from 'node:test'
import {
  BASE,
  condition,
  createAuthenticator,
  type Fhir,
  NOT_WITHIN,
  observation,
  patientAccess,
  readIssue,
} from '../../backends/sqlite/testing/fhir.ts'
import { createOutcome } from '../../fhir/index.ts'
import { fullAccess } from '../../smart/index.ts'
import { needs, type TestTarget } from './target.ts'
import { startTwoPatients } from './two-patients.ts'

const makeOutside = (element: string) =>
  `403 forbidden: Cannot store ${element}: the resource that it refers to does not exist, or is not covered by the token`

/** Reads and writes within a grant. */
export function testAccess(target: TestTarget): void {
  const { start } = target
  const it = needs(target)
  let fhir: Fhir
  let ann: Fhir
  let all: Fhir
  before(async () => {
    ;({ fhir, ann, all } = await startTwoPatients(start))
  })
  after(() => fhir.close())

  describe('a server with access control', () => {
    it('requires a token before it reads path or body (BEARER-1)', async () => {
      for (const line of [
        'GET Patient/ann',
        'GET nothing',
        'POST ',
        'DELETE Patient/ann',
        'GET _history',
        'PUT a/b/c',
      ])
        assert.equal(
          readIssue(await fhir(line, line.startsWith('P') ? 'not json' : undefined)),
          '401 login: Who?',
          line,
        )
      assert.equal((await fhir('GET Patient/ann')).headers['www-authenticate'], 'Bearer')
    })

    needs(target, 'metadata')('serves public documents without a token (BEARER-3)', async () => {
      for (const line of ['GET metadata', 'GET .well-known/smart-configuration', 'HEAD metadata'])
        assert.equal((await fhir(line)).status, 200, line)
      assert.equal((await fhir('OPTIONS Patient')).status, 204)
      assert.equal((await fhir('POST metadata', {})).status, 401)
    })

    it('returns the refusal of the interceptor, for each entry of a Bundle too', async () => {
      const refusing = await start({
        guard: {
          authenticate: async () => ({
            allowed: true,
            decide: interaction =>
              interaction.kind === 'bundle' || interaction.kind === 'read'
                ? { allowed: true, access: fullAccess }
                : {
                    allowed: false,
                    status: 403,
                    headers: { 'www-authenticate': 'Bearer error="insufficient_scope"' },
                    outcome: createOutcome('forbidden', 'No'),
                  },
          }),
        },
      })
      const refused = await refusing('POST Patient', { resourceType: 'Patient' })
      assert.equal(readIssue(refused), '403 forbidden: No')
      assert.equal(refused.headers['www-authenticate'], 'Bearer error="insufficient_scope"')
      const entry = [
        { resource: { resourceType: 'Patient' }, request: { method: 'POST', url: 'Patient' } },
        { request: { method: 'GET', url: 'Patient/1' } },
      ]
      const batch = await refusing('POST ', { resourceType: 'Bundle', type: 'batch', entry })
      assert.deepEqual(
        batch.body.entry?.map(it => it.response?.status),
        ['403 Forbidden', '404 Not Found'],
      )
      const whole = await refusing('POST ', { resourceType: 'Bundle', type: 'transaction', entry })
      assert.equal(readIssue(whole), '403 forbidden: No')
      await refusing.close()
    })
  })

  describe('a read within a compartment', () => {
    it('returns a resource of the compartment', async () => {
      for (const line of [
        'GET Patient/ann',
        'GET Condition/ca',
        'GET Practitioner/dr',
        'GET Observation/about-ob',
      ])
        assert.equal((await ann(line)).status, 200, line)
      assert.equal((await fhir.as('user')('GET Practitioner/dr')).status, 200)
    })

    it('responds in the same way for resources that are outside, absent, or deleted outside (ABSENT-1)', async () => {
      const lines = ['GET Condition/cb', 'GET Condition/none', 'GET Condition/gone-b', 'GET Condition/moved']
      const replies = await Promise.all(
        [...lines, 'GET Patient/bob', 'GET Observation/ob'].map(line => ann(line)),
      )
      assert.deepEqual(
        replies.map(readIssue),
        replies.map(() => NOT_WITHIN),
      )
      assert.equal(new Set(replies.map(it => it.text)).size, 1)
      assert.equal(readIssue(await fhir.as('user')('GET Practitioner/none')), NOT_WITHIN)
    })

    needs(target, 'deleted-versions')(
      'responds with 410 for a deleted resource of the compartment, and with 404 for an absent one that the grant names (ABSENT-2, ABSENT-3)',
      async () => {
        assert.equal((await ann('GET Condition/gone-a')).status, 410)
        const lonely = await start({ guard: createAuthenticator({ ann: patientAccess('ann') }) })
        assert.equal((await lonely.as('ann')('GET Patient/ann')).status, 404)
        assert.equal(readIssue(await lonely.as('ann')('GET Patient/bob')), NOT_WITHIN)
        await lonely.close()
      },
    )

    needs(
      target,
      'numbered-versions',
      'deleted-versions',
    )('checks each version by its own content and by that of the current version (ABSENT-5)', async () => {
      for (const version of [1, 2, 3, 4])
        assert.equal(readIssue(await ann(`GET Condition/moved/_history/${version}`)), NOT_WITHIN)
      for (const [version, status] of [200, 403, 200, 403].entries())
        assert.equal((await fhir.as('bob')(`GET Condition/moved/_history/${version + 1}`)).status, status)
      assert.equal((await ann('GET Condition/ca/_history/1')).status, 200)
      assert.equal((await ann('GET Condition/gone-a/_history/1')).status, 200)
    })

    it('applies the search of a granular scope', async () => {
      const limited = fhir.as('vitals')
      assert.equal((await limited('GET Observation/oa')).status, 200)
      for (const line of [
        'GET Observation/oa-lab',
        'GET Observation/ob',
        'GET Patient/ann',
        'GET Observation/none',
      ])
        assert.equal(readIssue(await limited(line)), NOT_WITHIN, line)
      assert.equal(readIssue(await fhir.as('unreadable')('GET Observation/oa')), NOT_WITHIN)
    })
  })

  describe('a write within a compartment', () => {
    it('accepts new content inside, and refuses it outside', async () => {
      assert.equal((await ann('POST Condition', condition('', 'ann'))).status, 422, 'an empty id is invalid')
      const { id: _, ...mine } = condition('x', 'ann')
      const { id: __, ...other } = condition('x', 'bob')
      assert.equal((await ann('POST Condition', mine)).status, 201)
      assert.equal(readIssue(await ann('POST Condition', other)), NOT_WITHIN)
      assert.equal(readIssue(await ann('PUT Condition/new', condition('new', 'bob'))), NOT_WITHIN)
      assert.equal((await all('GET Condition/new')).status, 404)
    })

    it('moves no resource into the compartment or out of it (WRITE-1)', async () => {
      await all('PUT Condition/w', condition('w', 'bob'))
      assert.equal(readIssue(await ann('PUT Condition/w', condition('w', 'ann'))), NOT_WITHIN)
      await all('PUT Condition/w', condition('w', 'ann'))
      assert.equal(readIssue(await ann('PUT Condition/w', condition('w', 'bob'))), NOT_WITHIN)
      const patch = [{ op: 'replace', path: '/subject/reference', value: 'Patient/bob' }]
      const type = { 'content-type': 'application/json-patch+json' }
      assert.equal(readIssue(await ann('PATCH Condition/w', patch, type)), NOT_WITHIN)
      assert.equal(readIssue(await ann('PATCH Condition/cb', [], type)), NOT_WITHIN)
      assert.equal(readIssue(await ann('PATCH Condition/none', [], type)), NOT_WITHIN)
      assert.equal(
        ((await all('GET Condition/w')).body.subject as { reference: string }).reference,
        'Patient/ann',
      )
    })

    it('responds in the same way to references that name outside and absent resources (WRITE-11)', async () => {
      const about = (reference: string) => {
        const { id: _, ...content } = observation('x', 'ann', { focus: [{ reference }] })
        return content
      }
      const transaction = (reference: string) => ({
        resourceType: 'Bundle',
        type: 'transaction',
        entry: [{ resource: about(reference), request: { method: 'POST', url: 'Observation' } }],
      })
      const add = (reference: string) => [{ op: 'add', path: '/focus', value: [{ reference }] }]
      const type = { 'content-type': 'application/json-patch+json' }
      for (const id of ['cb', 'none', 'gone-b', 'moved'])
        for (const reference of [`Condition/${id}`, `${BASE}/Condition/${id}`])
          for (const reply of [
            await ann('POST Observation', about(reference)),
            await ann('PATCH Observation/oa', add(reference), type),
            await ann('POST ', transaction(reference)),
          ])
            assert.equal(readIssue(reply), makeOutside('Observation.focus[0]'), reference)
      assert.equal((await ann('POST Observation', about('Condition/ca'))).status, 201)
      // Another caller has stored the reference.
      const { body } = await ann('GET Observation/about-ob')
      const kept = await ann('PUT Observation/about-ob', { ...body, note: [{ text: 'x' }] })
      assert.equal(kept.status, 200, kept.text)
    })

    needs(target, 'deleted-versions')(
      'deletes only inside, and responds outside in the same way for every resource',
      async () => {
        await all('PUT Condition/x', condition('x', 'ann'))
        assert.equal((await ann('DELETE Condition/x')).status, 204)
        assert.equal((await ann('DELETE Condition/x')).status, 204)
        for (const id of ['cb', 'none', 'gone-b'])
          assert.equal(readIssue(await ann(`DELETE Condition/${id}`)), NOT_WITHIN)
        assert.equal((await all('GET Condition/cb')).status, 200)
      },
    )

    needs(target, 'conditional-writes')(
      'reveals nothing about other resources by a condition (WRITE-8)',
      async () => {
        const header = { 'if-none-exist': 'recorded-date=2021' }
        const { id: _, ...mine } = condition('x', 'ann')
        assert.equal((await ann('POST Condition', mine, header)).status, 201, 'a match outside is no match')
        assert.equal((await ann('DELETE Condition?recorded-date=2021')).status, 204)
        assert.equal((await all('GET Condition/cb')).status, 200)
        assert.equal(
          readIssue(await ann('PUT Condition?recorded-date=2021', condition('cb', 'ann'))),
          NOT_WITHIN,
        )
      },
    )

    needs(
      target,
      'conditional-writes',
      'transactions',
    )(
      'does not name a match of its own patient that it may not read, and writes as if there were none (WRITE-14)',
      async () => {
        const hidden = condition('mixed', 'ann', {
          recordedDate: '1971',
          contained: [observation('inner', 'bob')],
          evidence: [{ detail: [{ reference: '#inner' }] }],
        })
        assert.equal((await all('PUT Condition/mixed', hidden)).status, 201)
        assert.equal(readIssue(await ann('GET Condition/mixed')), NOT_WITHIN)
        const { id: _, ...mine } = condition('x', 'ann')
        const created = await ann('POST Condition', mine, { 'if-none-exist': 'recorded-date=1971' })
        assert.equal(created.status, 201, created.text)
        const fullUrl = 'urn:uuid:8d4d9a0c-53a2-4f5e-9f0e-6c1b7a3c2f10'
        const { id: __, ...about } = observation('x', 'ann', { focus: [{ reference: fullUrl }] })
        const entry = [
          {
            fullUrl,
            resource: mine,
            request: { method: 'POST', url: 'Condition', ifNoneExist: 'recorded-date=1971' },
          },
          { resource: about, request: { method: 'POST', url: 'Observation' } },
        ]
        const both = await ann('POST ', { resourceType: 'Bundle', type: 'transaction', entry })
        assert.deepEqual(
          both.body.entry?.map(it => it.response?.status.slice(0, 3)),
          ['201', '201'],
          both.text,
        )
        assert.doesNotMatch(both.text, /mixed/)
        const updated = await ann('PUT Condition?recorded-date=1971', mine)
        assert.equal(updated.status, 201, updated.text)
      },
    )

    needs(
      target,
      'conditional-writes',
      'transactions',
    )(
      'creates a resource that has the condition of a hidden one of its own patient, and then finds its own (WRITE-14)',
      async () => {
        const values = ['create', 'update', 'transaction']
        const named = (of: readonly string[]) => ({
          identifier: of.map(value => ({ system: 'urn:t', value })),
        })
        const hidden = condition('mixed', 'ann', {
          ...named(values),
          contained: [observation('inner', 'bob')],
          evidence: [{ detail: [{ reference: '#inner' }] }],
        })
        assert.ok((await all('PUT Condition/mixed', hidden)).status < 300)
        assert.equal(readIssue(await ann('GET Condition/mixed')), NOT_WITHIN)
        for (const value of values) {
          const { id: __, ...mine } = condition('x', 'ann', named([value]))
          const query = `identifier=urn:t|${value}`
          const request = { method: 'POST', url: 'Condition', ifNoneExist: query }
          const entry = [{ resource: mine, request }]
          const send = async () => {
            if (value === 'update') return (await ann(`PUT Condition?${query}`, mine)).status
            if (value === 'create')
              return (await ann('POST Condition', mine, { 'if-none-exist': query })).status
            const reply = await ann('POST ', { resourceType: 'Bundle', type: 'transaction', entry })
            return Number.parseInt(reply.body.entry?.[0]?.response?.status ?? '', 10)
          }
          assert.deepEqual([await send(), await send()], [201, 200], value)
        }
      },
    )

    needs(
      target,
      'conditional-writes',
      'transactions',
    )("accepts a condition as HAPI's client writes it, only for the posted type of this server", async () => {
      const { id: _, ...mine } = condition('x', 'ann', { recordedDate: '2019-07-01' })
      const post = (value: string) => ann('POST Condition', mine, { 'if-none-exist': value })
      const made = await post(`${BASE}/Condition?recorded-date=2019-07-01`)
      assert.equal(made.status, 201, made.text)
      const entry = (ifNoneExist: string) => ({
        resource: mine,
        request: { method: 'POST', url: 'Condition', ifNoneExist },
      })
      for (const value of ['', 'Condition?', `${BASE}/Condition?`].map(
        it => `${it}recorded-date=2019-07-01`,
      )) {
        const again = await post(value)
        assert.deepEqual([again.status, again.body.id], [200, made.body.id], value)
        for (const type of ['batch', 'transaction']) {
          const reply = await ann('POST ', { resourceType: 'Bundle', type, entry: [entry(value)] })
          assert.match(
            reply.body.entry?.[0]?.response?.status ?? '',
            /^200/,
            `${type} ${value} ${reply.text}`,
          )
        }
      }
      for (const it of [
        'Patient?',
        `${BASE}/Patient?`,
        `${BASE}x/Condition?`,
        'http://other.test/Condition?',
        '?',
      ]) {
        const value = `${it}recorded-date=2019-07-01`
        assert.equal((await post(value)).status, 400, value)
        const reply = await ann('POST ', { resourceType: 'Bundle', type: 'batch', entry: [entry(value)] })
        assert.match(reply.body.entry?.[0]?.response?.status ?? '', /^400/, value)
      }
      await all(`DELETE Condition/${made.body.id}`)
    })

    needs(target, 'locations')('returns no content to a caller who may not read it (WRITE-7)', async () => {
      const { id: _, ...mine } = condition('x', 'ann')
      const reply = await fhir.as('creator')('POST Condition', mine)
      assert.deepEqual([reply.status, reply.text], [201, ''])
      assert.match(String(reply.headers.location), /Condition\/[\w-]+\/_history\/1$/)
    })
  })
}
