import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Resource } from '../src/fhir/index.ts'
import {
  ADMIN,
  type GuardedFhir,
  NOT_WITHIN,
  shownIn,
  startGuardedFhir,
  type TestCaller,
} from './support/guarded-fhir.ts'
import { GUARDED_SERVERS } from './support/guarded-servers.ts'

const to = (reference: string) => ({ reference })
const condition = (id: string, of: string, more: object = {}): Resource => ({
  resourceType: 'Condition',
  id,
  subject: to(`Patient/${of}`),
  ...more,
})

const DATA: readonly Resource[] = [
  { resourceType: 'Practitioner', id: 'dr' },
  { resourceType: 'Practitioner', id: 'dr-2' },
  { resourceType: 'Patient', id: 'ann', name: [{ family: 'Annson' }] },
  { resourceType: 'Patient', id: 'bob', name: [{ family: 'Secretson' }] },
  condition('ca', 'ann', {
    code: { text: 'Cough' },
    asserter: to('Practitioner/dr'),
  }),
  condition('cb', 'bob', { code: { text: 'Secret' } }),
  condition('cg', 'bob'),
]

const ann = (scope = 'patient/*.cruds', more: object = {}): TestCaller => ({
  scope,
  patient: 'ann',
  client_id: 'app-1',
  sub: 'c-1',
  ...more,
})

let fhir: GuardedFhir
/** A resource of another patient, a deleted one and an absent one: the responses are equal in status, headers and body. */
async function assertAlike(line: (id: string) => string, asking: TestCaller, body?: (id: string) => unknown) {
  const answers = []
  for (const id of ['cb', 'cg', 'cx']) {
    const { status, text, headers } = await fhir.ask(line(id), asking, body?.(id))
    const { date: _, 'x-request-id': __, ...rest } = headers
    answers.push(JSON.stringify([status, text, rest]).replaceAll(id, 'ID'))
  }
  assert.equal(new Set(answers).size, 1, answers.join('\n'))
}

for (const [name, open] of Object.entries(GUARDED_SERVERS))
  describe(name, () => {
    before(async () => {
      fhir = await startGuardedFhir(DATA, {}, open)
      await fhir.ask('DELETE /Condition/cg', ADMIN)
    })
    after(() => fhir.close())

    describe('a resource of another patient, a deleted one and an absent one', () => {
      const patch = [{ op: 'add', path: '/recordedDate', value: '2020' }]
      const lines: readonly (readonly [string, ((id: string) => unknown)?])[] = [
        ['GET /Condition/ID'],
        ['HEAD /Condition/ID'],
        ['GET /Condition/ID/_history'],
        ['GET /Condition/ID/_history/1'],
        ['GET /Condition/ID?_elements=id'],
        ['DELETE /Condition/ID'],
        ['PATCH /Condition/ID', () => patch],
        ['PUT /Condition/ID', id => condition(id, 'bob')],
        ['GET /Condition?_id=ID'],
        ['GET /Condition?_id=ID&_summary=count'],
        ['DELETE /Condition?_id=ID'],
        ['PATCH /Condition?_id=ID', () => patch],
        ['GET /Practitioner?_has:Condition:asserter:_id=ID'],
      ]
      for (const [line, body] of lines)
        it(`cannot be distinguished by ${line} (ABSENT-1)`, async () => {
          await assertAlike(id => line.replace('ID', id), ann(), body)
        })

      it('get a response with the scopes that would allow the request', async () => {
        const { body } = await fhir.ask('GET /Condition/cb', ann())
        const [issue] = body.issue as { readonly diagnostics?: string }[]
        assert.match(
          issue?.diagnostics ?? '',
          /^Not within the granted patient, user or filter\. The token's scopes do not cover this resource, or it does not exist/,
        )
      })

      it('cannot be distinguished by a precondition (ABSENT-6)', async () => {
        for (const headers of [{ 'if-match': 'W/"1"' }, { 'if-match': '*' }, { 'if-match': 'W/"99"' }])
          for (const line of ['PUT /Condition/ID', 'DELETE /Condition/ID'])
            await assertAlike(
              id => line.replace('ID', id),
              ann('patient/*.cruds', { headers }),
              line.startsWith('PUT') ? id => condition(id, 'ann') : undefined,
            )
        for (const headers of [
          { 'if-none-match': 'W/"1"' },
          { 'if-modified-since': new Date().toUTCString() },
        ])
          await assertAlike(id => `GET /Condition/${id}`, ann('patient/*.rs', { headers }))
      })

      it('cannot be distinguished by an entry of a batch, or by the failure of a transaction (ABSENT-6)', async () => {
        for (const type of ['batch', 'transaction'])
          for (const method of ['GET', 'DELETE'])
            await assertAlike(
              () => 'POST /',
              ann(),
              id => ({
                resourceType: 'Bundle',
                type,
                entry: [{ request: { method, url: `Condition/${id}` } }],
              }),
            )
      })

      it("cannot be distinguished by writing a Patient: only the user's own record can be tried", async () => {
        const answers = []
        for (const id of ['bob', 'nobody']) {
          const { status, text } = await fhir.ask(`PUT /Patient/${id}`, ann(), {
            resourceType: 'Patient',
            id,
          })
          answers.push(JSON.stringify([status, text]).replaceAll(id, 'ID'))
        }
        assert.equal(new Set(answers).size, 1, answers.join('\n'))
        assert.match(answers[0] ?? '', /^\[403,/)
      })

      it('can be distinguished for the patient of the token, which the caller knows', async () => {
        assert.equal(
          (await fhir.ask('GET /Patient/nobody', ann('patient/*.rs', { patient: 'nobody' }))).status,
          404,
        )
      })
    })

    describe('a caller who may write but not read', () => {
      const blind = ann('patient/Condition.u patient/Condition.c')
      const run = (patch: readonly object[], id = 'ca', asking = blind) =>
        fhir.ask(`PATCH /Condition/${id}`, asking, patch)

      it('gets a response without the resource (WRITE-7)', async () => {
        const made = await fhir.ask('POST /Condition', blind, { ...condition('', 'ann'), id: undefined })
        assert.deepEqual([made.status, made.text], [201, ''])
        const put = await fhir.ask('PUT /Condition/mine', blind, condition('mine', 'ann'))
        assert.deepEqual([put.status, put.text], [201, ''])
        const patched = await run([{ op: 'add', path: '/recordedDate', value: '2020' }])
        assert.deepEqual([patched.status, patched.text], [200, ''])
        const entry = [
          { request: { method: 'PUT', url: 'Condition/mine' }, resource: condition('mine', 'ann') },
        ]
        const bundle = await fhir.ask('POST /', blind, { resourceType: 'Bundle', type: 'transaction', entry })
        assert.equal(bundle.body.entry?.[0]?.resource, undefined)
      })

      it('cannot query stored content by a patch', async () => {
        for (const value of ['Cough', 'Fever'])
          assert.equal((await run([{ op: 'test', path: '/code/text', value }])).why, NOT_WITHIN)
        const missing = await run([{ op: 'remove', path: '/note' }])
        assert.deepEqual([missing.status, missing.why], [422, 'Cannot apply patch'])
        const reading = ann('patient/Condition.ru')
        assert.equal(
          (await run([{ op: 'test', path: '/code/text', value: 'Cough' }], 'ca', reading)).status,
          200,
        )
        assert.match(
          (await run([{ op: 'remove', path: '/note' }], 'ca', reading)).why ?? '',
          /^Cannot apply patch: ./,
        )
      })

      it('cannot read content by a filter that limits writes', async () => {
        const scope = 'patient/Condition.u patient/Condition.r?code:text=Fever'
        assert.equal(
          (await run([{ op: 'test', path: '/code/text', value: 'Cough' }], 'ca', ann(scope))).why,
          NOT_WITHIN,
        )
      })
    })

    describe('conditional references', () => {
      const run = (reference: string, asking: TestCaller) =>
        fhir.ask('POST /', asking, {
          resourceType: 'Bundle',
          type: 'transaction',
          entry: [
            {
              request: { method: 'POST', url: 'Condition' },
              resource: { resourceType: 'Condition', subject: to(reference) },
            },
          ],
        })

      it('find only resources that the caller may search (WRITE-9)', async () => {
        assert.equal((await run('Patient?name=Annson', ann())).status, 200)
        const [other, nobody] = [
          await run('Patient?name=Secretson', ann()),
          await run('Patient?name=Nobody', ann()),
        ]
        assert.deepEqual([other.status, other.text], [nobody.status, nobody.text])
        const blind = await run('Patient?name=Annson', ann('patient/Condition.c'))
        assert.deepEqual([blind.status, blind.text], [nobody.status, nobody.text])
        const found = await fhir.ask('GET /Condition?subject=Patient/bob&_summary=count', ADMIN)
        assert.equal(found.body.total, 1)
      })

      it('do not count as a patient if they are not resolved (WRITE-9)', async () => {
        const posted = await fhir.ask('POST /Condition', ann(), {
          resourceType: 'Condition',
          subject: to('Patient?name=Annson'),
        })
        assert.equal(posted.why, NOT_WITHIN)
      })
    })

    describe('a grant of several parts', () => {
      it('gives access to everything that any of its scopes covers', async () => {
        const both = ['Condition/ca', 'Condition/cb']
        for (const query of ['_id=ca,cb', 'code:text=Cough,Secret', '_lastUpdated=gt2000'])
          for (const scope of ['patient/Condition.rs', 'patient/Condition.rs?code:text=Cough']) {
            const mixed = ann(`${scope} system/Condition.rs?code:text=Secret`)
            const shown = shownIn(await fhir.ask(`GET /Condition?${query}`, mixed))
            assert.deepEqual(
              shown.filter(it => both.includes(it)),
              both,
              `${query} ${scope}`,
            )
          }
        const whole = shownIn(
          await fhir.ask('GET /Condition', ann('patient/*.rs system/*.rs?code:text=Secret')),
        )
        assert.ok(both.every(it => whole.includes(it)))
      })

      it("includes the user's own resource, and no other of its type", async () => {
        const include = 'GET /Condition?_id=ca&_include=Condition:asserter'
        const user = (fhirUser: string) => ann('patient/Condition.rs', { fhirUser })
        assert.deepEqual(shownIn(await fhir.ask(include, user('Practitioner/dr'))), [
          'Condition/ca',
          'Practitioner/dr',
        ])
        assert.deepEqual(shownIn(await fhir.ask(include, user('Practitioner/dr-2'))), ['Condition/ca'])
      })
    })

    describe('two clients of one clinician', () => {
      it('do not share pages', async () => {
        for (let at = 0; at < 3; at++)
          await fhir.ask(`PUT /Condition/p-${at}`, ADMIN, condition(`p-${at}`, 'ann'))
        const first = await fhir.ask('GET /Condition?_count=1', ann())
        const next = first.body.link?.find(({ relation }) => relation === 'next')?.url ?? ''
        const line = `GET ${next.slice(next.indexOf('/fhir') + '/fhir'.length)}`
        assert.equal(shownIn(await fhir.ask(line, ann())).length, 1)
        for (const other of [
          ann('patient/*.cruds', { client_id: 'app-2' }),
          ann('patient/*.cruds', { sub: 'c-2' }),
          ann('patient/*.cruds', { patient: 'bob' }),
          ann('patient/*.rs'),
          ADMIN,
        ])
          assert.equal((await fhir.ask(line, other)).why, NOT_WITHIN)
        const history = await fhir.ask('GET /_history?_count=1', ann())
        const older = history.body.link?.find(({ relation }) => relation === 'next')?.url ?? ''
        const back = `GET ${older.slice(older.indexOf('/fhir') + '/fhir'.length)}`
        assert.equal((await fhir.ask(back, ann('patient/*.cruds', { client_id: 'app-2' }))).why, NOT_WITHIN)
        assert.equal((await fhir.ask(back, ann())).status, 200)
      })
    })
  })
