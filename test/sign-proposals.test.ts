import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { createAuditor, createFhirAudit } from '../src/audit/index.ts'
import { switchAgents } from '../src/auth/oauth/grants/agents-switch.ts'
import { AGENT, addAgent, askAsAgent, MCP } from '../src/auth/testing/agent.ts'
import { addBackend, requestBackendToken } from '../src/auth/testing/backend.ts'
import { readForm } from '../src/auth/testing/read-form.ts'
import { readRedirect, TestAuthServer } from '../src/auth/testing/test-auth-server.ts'
import type { TestBrowser } from '../src/auth/testing/test-browser.ts'
import { patient } from '../src/auth/testing/test-fhir-server.ts'
import { PROPOSALS } from '../src/auth/words/proposals.ts'
import { DAY_MS } from '../src/core/index.ts'
import type { Resource } from '../src/fhir/index.ts'
import { createInterceptor, type Interceptor } from '../src/interceptor/index.ts'
import { createCallCounter, createMcp } from '../src/mcp/index.ts'
import { createProposals } from '../src/proposals/index.ts'
import { createSealer, type Store } from '../src/store/index.ts'
import { eachDatabaseIfThorough } from './support/databases.ts'
import { GUARDED_SERVERS, type OpenGuarded } from './support/guarded-servers.ts'

const BASE = 'http://localhost:8080/fhir'
const AIAST = 'http://terminology.hl7.org/CodeSystem/v3-ObservationValue'
const CLINICAL = 'http://terminology.hl7.org/CodeSystem/condition-clinical'

const condition = (id: string, of = 'juniper'): Resource => ({
  resourceType: 'Condition',
  id,
  meta: { security: [{ system: 'urn:labels', code: 'own' }] },
  subject: { reference: `Patient/${of}` },
  clinicalStatus: { coding: [{ system: CLINICAL, code: 'active' }] },
  code: { text: 'Cough <b>since</b> May' },
})

const RESOLVE = [{ op: 'replace', path: '/clinicalStatus/coding/0/code', value: 'resolved' }]

interface Hospital {
  readonly auth: TestAuthServer
  /** Another instance on the same database. */
  readonly other: TestAuthServer
  readonly fhir: FastifyInstance
  /** What a clinician may do, by type and permission. */
  rights: Set<string> | undefined
  /** Called with each transaction before it reaches the FHIR server; what it returns is the answer instead. */
  onTransaction: ((forward: () => Promise<Response>) => Promise<Response>) | undefined
  read(url: string): Promise<Resource & { readonly status: number }>
  write(resource: Resource): Promise<void>
  propose(given: object): Promise<string>
  list(): Promise<readonly Readonly<Record<string, string>>[]>
}

/** An auth server, and a FHIR server that verifies its tokens. */
async function open(store: Store, openGuarded: OpenGuarded): Promise<Hospital> {
  let fhir: FastifyInstance | undefined
  let interceptor: Interceptor | undefined
  const auditor = createAuditor({ store })
  const state: { rights: Set<string> | undefined; onTransaction: Hospital['onTransaction'] } = {
    rights: undefined,
    onTransaction: undefined,
  }
  const send = async (app: FastifyInstance | undefined, input: unknown, init: RequestInit = {}) => {
    assert(app)
    const { pathname, search } = new URL(String(input))
    const reply = await app.inject({
      method: init.method === 'POST' ? 'POST' : 'GET',
      url: pathname + search,
      headers: Object.fromEntries(new Headers(init.headers)),
      ...(typeof init.body === 'string' && { payload: init.body }),
    })
    const headers = Object.entries(reply.headers).map(
      ([name, value]) => [name, String(value)] as [string, string],
    )
    return new Response(reply.statusCode === 204 ? null : reply.body, { status: reply.statusCode, headers })
  }
  const fetch: typeof globalThis.fetch = (input, init) => {
    if (!String(input).startsWith(BASE)) return send(auth.app, input, init)
    const forward = () => send(fhir, input, init)
    return init?.method === 'POST' && state.onTransaction ? state.onTransaction(forward) : forward()
  }
  const auth = await TestAuthServer.open(store, { fetch, audit: auditor })
  const other = await TestAuthServer.open(store, { fetch, audit: auditor })
  const clock = () => auth.time.now
  const userFilter = (_user: unknown, type: string, permission: string) =>
    !state.rights || state.rights.has(`${type}.${permission}`) ? ('everything' as const) : []
  interceptor = createInterceptor({
    authUrl: auth.settings.issuerUrl,
    fhirBaseUrl: BASE,
    fetch: (input, init) => send(auth.app, input, init),
    clock,
    contexts: ['patient', 'user', 'system'],
    userFilter,
  })
  fhir = await openGuarded(interceptor, BASE, createFhirAudit({ auditor, store, fhirBaseUrl: BASE }), {
    clock,
    ways: [
      createMcp({
        baseUrl: BASE,
        version: '1.2.3',
        guard: interceptor.forAudience(MCP),
        metadataUrl: 'http://localhost:8080/.well-known/oauth-protected-resource/fhir/mcp',
        scopes: [],
        acceptsOrigin: () => false,
        calls: createCallCounter(100_000),
        proposals: {
          store,
          proposals: createProposals(createSealer('test secret')),
          lifetimeMs: 7 * DAY_MS,
          url: `${auth.settings.issuerUrl}/proposals`,
        },
      }),
    ],
  })
  await addBackend(auth, 'loader', 'system/*.cruds')
  const opened = fhir
  const authorization = async () => ({
    authorization: `Bearer ${await requestBackendToken(auth, 'loader', 'system/*.cruds')}`,
  })
  async function write(resource: Resource): Promise<void> {
    const { statusCode, body } = await opened.inject({
      method: 'PUT',
      url: `/fhir/${resource.resourceType}/${resource.id}`,
      headers: { ...(await authorization()), 'content-type': 'application/fhir+json' },
      payload: JSON.stringify(resource),
    })
    assert(statusCode < 300, body)
  }
  for (const resource of [
    { resourceType: 'Practitioner', id: '1' },
    patient('juniper', 'Juniper', 'Alba'),
    patient('ashlar', 'Ashlar', 'Tobias'),
    condition('cough'),
    condition('other', 'ashlar'),
  ])
    await write(resource)
  await addAgent(auth)
  async function callTool(name: string, given: object, token: string) {
    const reply = await opened.inject({
      method: 'POST',
      url: '/fhir/mcp',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'mcp-protocol-version': '2025-06-18',
      },
      payload: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name, arguments: given },
      }),
    })
    const { result } = reply.json()
    assert(result && !result.isError, reply.body)
    return result.structuredContent
  }
  const scope = 'patient/Condition.cruds patient/Patient.rs'
  async function getToken(): Promise<string> {
    const asked = await askAsAgent(auth, await auth.logIn(), { scope })
    const { code = '' } = readRedirect(await asked.allow('patient/Condition.cud'))
    const tokens = (await auth.exchange(code, AGENT)).json()
    assert.match(tokens.scope, /Condition\.cruds/)
    return tokens.access_token
  }
  return {
    auth,
    other,
    fhir,
    get rights() {
      return state.rights
    },
    set rights(rights) {
      state.rights = rights
      interceptor?.forget()
    },
    get onTransaction() {
      return state.onTransaction
    },
    set onTransaction(handle) {
      state.onTransaction = handle
    },
    write,
    async read(url) {
      const reply = await opened.inject({
        method: 'GET',
        url: `/fhir/${url}`,
        headers: await authorization(),
      })
      return { ...reply.json(), status: reply.statusCode }
    },
    propose: async given =>
      (await callTool('propose_change', { reason: 'The cough is over', ...given }, await getToken()))
        .proposal,
    list: async () => (await callTool('list_proposals', {}, await getToken())).proposals,
  }
}

const patchOf = (id: string) => ({ action: 'patch', reference: `Condition/${id}`, patch: RESOLVE })

const listEntries = ({ entry }: Resource) => (entry ?? []) as readonly { readonly resource: Resource }[]

for (const [name, openGuarded] of Object.entries(GUARDED_SERVERS))
  eachDatabaseIfThorough((_database, openStore) => {
    describe(`signing a proposal, with ${name}`, () => {
      let hospital: Hospital
      let browser: TestBrowser
      before(async () => {
        hospital = await open(await openStore(), openGuarded)
        browser = await hospital.auth.logIn()
      })
      after(() => hospital.fhir.close())

      const page = (id: string) => browser.get(`/proposals/${id}`)
      const signShown = async (id: string, shown: string | null) =>
        browser.post(`/proposals/${id}/sign`, { shown: shown ?? '' })
      const readShown = async (id: string) => readForm((await page(id)).body).get('shown')
      const sign = async (id: string) => signShown(id, await readShown(id))
      const findState = async (id: string) => (await hospital.list()).find(({ proposal }) => proposal === id)
      const listProvenance = async (id: string) =>
        listEntries(
          await hospital.read(
            `Provenance?_tag=${encodeURIComponent(`http://localhost:9000/proposals|${id}`)}`,
          ),
        )
      async function clear() {
        await hospital.auth.store.db.deleteFrom('proposal').execute()
      }

      it('shows what changes in words, who proposes it, and what the page does not vouch for (PROPOSAL-8)', async () => {
        const id = await hospital.propose({ ...patchOf('cough'), reason: 'Over. <script>alert(1)</script>' })
        const { body, statusCode } = await page(id)
        assert.equal(statusCode, 200)
        assert.match(body, /<blockquote[^>]*><p>Over\. &lt;script&gt;/)
        assert.match(body, /Scribe/)
        assert.match(
          body,
          /Clinical status[\s\S]*?condition-clinical active[\s\S]*?condition-clinical resolved/,
        )
        assert.doesNotMatch(body, /<script>alert|<b>since/)
        assert.match(
          (await browser.get('/portal')).body,
          /href="\/proposals"[^>]*>Proposals <span class="badge[^>]*>1</,
        )
        assert.match((await browser.get('/proposals')).body, new RegExp(`href="/proposals/${id}"`))
        await clear()
      })

      it('writes what was shown as one transaction, marked, with its Provenance (PROPOSAL-9)', async () => {
        const id = await hospital.propose(patchOf('cough'))
        const reply = await sign(id)
        assert.deepEqual([reply.statusCode, reply.headers.location], [303, `/proposals/${id}`], reply.body)
        const written = await hospital.read('Condition/cough')
        assert.deepEqual(written.clinicalStatus, { coding: [{ system: CLINICAL, code: 'resolved' }] })
        const { security } = written.meta as { security: { system: string; code: string }[] }
        assert.deepEqual(
          security.map(({ system, code }) => [system, code]),
          [
            ['urn:labels', 'own'],
            [AIAST, 'AIAST'],
          ],
        )
        const [found, ...more] = await listProvenance(id)
        assert.deepEqual(more, [])
        const provenance = found?.resource as unknown as {
          target: { reference: string }[]
          contained: { id: string; deviceName: { name: string }[] }[]
          agent: { type: { coding: { code: string }[] }; who: { reference: string } }[]
        }
        assert.deepEqual(
          provenance.target.map(it => it.reference),
          ['Condition/cough', 'Patient/juniper'],
        )
        assert.equal(provenance.contained[0]?.deviceName[0]?.name, 'Scribe')
        assert.deepEqual(
          provenance.agent.map(({ type, who }) => [type.coding[0]?.code, who.reference]),
          [
            ['author', `#${provenance.contained[0]?.id}`],
            ['verifier', 'Practitioner/practitioner-1'],
          ],
        )
        assert.match((await page(id)).body, /You signed it/)
        const state = await findState(id)
        assert.deepEqual([state?.state, state?.reference], ['signed', 'Condition/cough'])
        assert.equal(state?.version, (written.meta as { versionId: string }).versionId)
        await clear()
      })

      it('creates and deletes, and the Provenance says so (PROPOSAL-9)', async () => {
        const { id: _, ...resource } = condition('x')
        const made = await hospital.propose({ action: 'create', type: 'Condition', resource })
        assert.equal((await sign(made)).statusCode, 303)
        const state = await findState(made)
        assert.match(state?.reference ?? '', /^Condition\//)
        assert.equal((await hospital.read(state?.reference ?? '')).status, 200)
        const removed = await hospital.propose({ action: 'delete', reference: state?.reference })
        assert.match((await page(removed)).body, /Is removed/)
        assert.equal((await sign(removed)).statusCode, 303)
        assert.equal((await hospital.read(state?.reference ?? '')).status, 410)
        const [provenance] = await listProvenance(removed)
        assert.match(JSON.stringify(provenance?.resource), /"removal"/)
        await clear()
      })

      it('is written although an assistant gives its mark to other content (PROPOSAL-11)', async () => {
        const { id: _, ...resource } = condition('x')
        const create = (more: object) =>
          hospital.propose({ action: 'create', type: 'Condition', resource: { ...resource, ...more } })
        const real = await create({ code: { text: 'Allergy' } })
        const marked = { meta: { tag: [{ system: 'http://localhost:9000/proposals', code: real }] } }
        const before = (await listProvenance(real)).length
        for (const id of [
          await create(marked),
          await hospital.propose({
            ...patchOf('cough'),
            patch: [{ op: 'add', path: '/meta/tag', value: marked.meta.tag }],
          }),
        ])
          assert.equal((await sign(id)).statusCode, 303)
        assert.deepEqual([before, (await listProvenance(real)).length], [0, 0])
        assert.equal((await sign(real)).statusCode, 303)
        const { reference = '' } = (await findState(real)) ?? {}
        assert.deepEqual((await hospital.read(reference)).code, { text: 'Allergy' })
        await clear()
      })

      it('shows all of a long text, and nothing in another order than it has (PROPOSAL-8)', async () => {
        const { id: _, ...resource } = condition('x')
        const text = `${'long '.repeat(8_000)}the\u202eend`
        const id = await hospital.propose({
          action: 'create',
          type: 'Condition',
          resource: { ...resource, note: [{ text }] },
        })
        const { body } = await page(id)
        assert.match(body, /long the[^\u202e]{0,20}end/)
        assert.doesNotMatch(body, /\u202e/)
        await clear()
      })

      it('writes nothing that the person has not seen: the page then shows the new state (PROPOSAL-10)', async () => {
        await hospital.write(condition('seen'))
        const id = await hospital.propose(patchOf('seen'))
        const shown = await readShown(id)
        await hospital.write({ ...condition('seen'), code: { text: 'Asthma' } })
        const reply = await signShown(id, shown)
        assert.equal(reply.statusCode, 409)
        assert.match(reply.body, /The record has changed since you opened this page/)
        assert.match(reply.body, /changed after the assistant had read it/)
        assert.match(reply.body, /Asthma/)
        assert.match(JSON.stringify(await hospital.read('Condition/seen')), /"active"/)
        for (const wrong of [null, 'x', `${shown}x`])
          assert.equal((await signShown(id, wrong)).statusCode, 409)
        // The form of the page that shows the new state.
        assert.equal((await signShown(id, readForm(reply.body).get('shown'))).statusCode, 303)
        const written = await hospital.read('Condition/seen')
        assert.deepEqual([written.code, (await findState(id))?.state], [{ text: 'Asthma' }, 'signed'])
        await clear()
      })

      it('binds the write to the version that was shown, to the last moment (PROPOSAL-10)', async () => {
        await hospital.write(condition('raced'))
        const id = await hospital.propose(patchOf('raced'))
        hospital.onTransaction = async forward => {
          hospital.onTransaction = undefined
          await hospital.write({ ...condition('raced'), code: { text: 'Asthma' } })
          return forward()
        }
        const reply = await sign(id)
        assert.equal(reply.statusCode, 409)
        assert.deepEqual((await hospital.read('Condition/raced')).code, { text: 'Asthma' })
        assert.deepEqual([(await findState(id))?.state, await listProvenance(id)], ['open', []])
        await clear()
      })

      it('is done once, however often the form is sent (PROPOSAL-7)', async () => {
        await hospital.write(condition('twice'))
        const id = await hospital.propose(patchOf('twice'))
        const shown = await readShown(id)
        const replies = await Promise.all([1, 2, 3].map(() => signShown(id, shown)))
        assert.equal(replies.filter(it => it.statusCode === 303).length, 1)
        const again = await signShown(id, shown)
        assert.equal(again.statusCode, 409)
        assert.match(again.body, /This proposal is not open any more/)
        assert.equal((await listProvenance(id)).length, 1)
        assert.equal((await browser.post(`/proposals/${id}/reject`, {})).statusCode, 409)
        await clear()
      })

      it('is done once by several instances at the same time (PROPOSAL-7)', async () => {
        hospital.other.time.now = hospital.auth.time.now
        const elsewhere = await hospital.other.logIn()
        const { id: _, ...resource } = condition('x')
        for (let time = 0; time < 5; time += 1) {
          const id = await hospital.propose({ action: 'create', type: 'Condition', resource })
          const shown = (await readShown(id)) ?? ''
          const replies = await Promise.all(
            [browser, elsewhere, browser, elsewhere].map(it => it.post(`/proposals/${id}/sign`, { shown })),
          )
          assert.equal(replies.filter(it => it.statusCode === 303).length, 1)
          assert.equal((await listProvenance(id)).length, 1)
        }
        await clear()
      })

      it('is refused after the account was disabled (PROPOSAL-12)', async () => {
        await hospital.write(condition('gone'))
        const id = await hospital.propose(patchOf('gone'))
        const shown = await readShown(id)
        const { db } = hospital.auth.store
        const disable = (disabled: boolean) =>
          db.updateTable('clinician').set({ disabled }).where('username', '=', 'clinician').execute()
        await disable(true)
        const refused = await signShown(id, shown)
        assert.match(String(refused.headers.location), /\/login/)
        assert.equal((await browser.get('/proposals')).statusCode, 302)
        await disable(false)
        browser = await hospital.auth.logIn()
        assert.match(JSON.stringify(await hospital.read('Condition/gone')), /"active"/)
        assert.deepEqual(await listProvenance(id), [])
        assert.equal((await findState(id))?.state, 'open')
        await clear()
      })

      it('shows the characters of a record that change how others are shown', async () => {
        await hospital.write({ ...condition('bidi'), code: { text: 'Dose 01 \u202emg 05\u202c\u200b' } })
        const change = [{ op: 'replace', path: '/code/text', value: 'Dose 10 \u202egm 50\u202c' }]
        const id = await hospital.propose({ action: 'patch', reference: 'Condition/bidi', patch: change })
        const { body } = await page(id)
        assert.doesNotMatch(body, /[\u202e\u202c\u200b]/)
        assert.ok(body.includes('Dose 01 \\u202emg 05\\u202c\\u200b'))
        assert.ok(body.includes('Dose 10 \\u202egm 50\\u202c'))
        await clear()
      })

      it('is settled by the record after an interruption, and writes nothing twice (PROPOSAL-11)', async () => {
        const { id: _, ...resource } = condition('x')
        const propose = () => hospital.propose({ action: 'create', type: 'Condition', resource })
        const count = async () => Number((await hospital.read('Condition?_summary=count')).total)
        const before = await count()
        // The answer is lost: it was written.
        const written = await propose()
        hospital.onTransaction = async forward => {
          await forward()
          throw new TypeError('fetch failed')
        }
        const lost = await sign(written)
        assert.match(lost.body, /You signed it/)
        assert.equal((await findState(written))?.state, 'signed')
        // The request is lost: it was not.
        const unwritten = await propose()
        const shown = await readShown(unwritten)
        hospital.onTransaction = () => Promise.reject(new TypeError('fetch failed'))
        const unknown = await signShown(unwritten, shown)
        assert.equal(unknown.statusCode, 503)
        assert.match(unknown.body, /not known yet/)
        assert.equal((await signShown(unwritten, shown)).statusCode, 503)
        hospital.auth.time.now += 121_000
        browser = await hospital.auth.logIn()
        // It arrives late, after it was signed again.
        let late: (() => Promise<Response>) | undefined
        hospital.onTransaction = async forward => {
          late = forward
          hospital.onTransaction = undefined
          return forward()
        }
        assert.equal((await sign(unwritten)).statusCode, 303)
        const answer = await late?.()
        assert.equal(answer?.status, 200)
        assert.equal(await count(), before + 2)
        assert.equal((await listProvenance(unwritten)).length, 1)
        await clear()
      })

      it('goes by the rights of the person at that moment (PROPOSAL-12)', async () => {
        await hospital.write(condition('lost'))
        const id = await hospital.propose(patchOf('lost'))
        const shown = await readShown(id)
        const read = [
          'Patient.r',
          'Patient.s',
          'Condition.r',
          'Condition.s',
          'Provenance.c',
          'Provenance.r',
          'Provenance.s',
        ]
        hospital.rights = new Set(read)
        const refused = await signShown(id, shown)
        assert.equal(refused.statusCode, 403, refused.body)
        assert.match(refused.body, /Your account may not make this change/)
        assert.equal((await findState(id))?.state, 'open')
        hospital.rights = new Set(['Patient.r'])
        const hidden = await page(id)
        assert.match(hidden.body, /You cannot open this record/)
        assert.doesNotMatch(hidden.body, /Cough|Sign and write/)
        assert.equal((await signShown(id, shown)).statusCode, 403)
        hospital.rights = undefined
        assert.match(JSON.stringify(await hospital.read('Condition/lost')), /"active"/)
        assert.equal((await sign(id)).statusCode, 303)
        await clear()
      })

      it('is refused where the FHIR server does not accept the change, in its words', async () => {
        await hospital.write(condition('odd'))
        const id = await hospital.propose(patchOf('odd'))
        hospital.onTransaction = async () =>
          Response.json(
            { resourceType: 'OperationOutcome', issue: [{ diagnostics: 'Code <i>unknown</i>' }] },
            { status: 422 },
          )
        const reply = await sign(id)
        hospital.onTransaction = undefined
        assert.equal(reply.statusCode, 422)
        assert.match(reply.body, /does not accept this change[\s\S]*Code &lt;i&gt;unknown/)
        assert.equal((await findState(id))?.state, 'open')
        await clear()
      })

      it('cannot fit a record that the patch no longer fits', async () => {
        await hospital.write(condition('bare'))
        const id = await hospital.propose(patchOf('bare'))
        const { clinicalStatus: _, ...bare } = condition('bare')
        await hospital.write({ ...bare, resourceType: 'Condition' })
        const { body } = await page(id)
        assert.match(body, /The change does not fit the record as it is now/)
        assert.doesNotMatch(body, /Sign and write/)
        assert.equal((await signShown(id, 'x')).statusCode, 409)
        await clear()
      })

      it('ends with the app, and with the switch of all assistants, but not with the access of the assistant (PROPOSAL-6)', async () => {
        await hospital.write(condition('ends'))
        const id = await hospital.propose(patchOf('ends'))
        const shown = await readShown(id)
        const { db } = hospital.auth.store
        await switchAgents(db, 'off', hospital.auth.time.now)
        const off = await signShown(id, shown)
        assert.deepEqual([off.statusCode, /Assistants are switched off/.test(off.body)], [403, true])
        await switchAgents(db, 'on', hospital.auth.time.now)
        await db.updateTable('client').set({ disabled: true }).where('client_id', '=', 'scribe').execute()
        const disabled = await signShown(id, shown)
        assert.deepEqual([disabled.statusCode, /disabled or was removed/.test(disabled.body)], [403, true])
        await db.updateTable('client').set({ disabled: false }).where('client_id', '=', 'scribe').execute()
        // Its access was revoked by the switch.
        assert.equal((await sign(id)).statusCode, 303)
        await clear()
      })

      it('is for its person alone, and the form for this site alone', async () => {
        await hospital.write(condition('mine'))
        const { db } = hospital.auth.store
        const now = hospital.auth.time.now
        const { id: userId } = await hospital.auth.findUser('clinician')
        const change = {
          action: 'patch',
          type: 'Condition',
          id: 'mine',
          content: JSON.stringify(RESOLVE),
          reason: 'x',
        } as const
        const proposer = { userId, clientId: 'scribe', grantId: 'g', patient: 'juniper' }
        const id = String(
          await createProposals(createSealer('test secret')).add(db, change, proposer, {
            now,
            expiresAt: now + DAY_MS,
          }),
        )
        await hospital.auth.addUser('other')
        const other = await hospital.auth.logIn('other')
        assert.equal((await other.get(`/proposals/${id}`)).statusCode, 404)
        const shown = (await readShown(id)) ?? ''
        assert.equal((await other.post(`/proposals/${id}/sign`, { shown })).statusCode, 404)
        const foreign = await browser.post(
          `/proposals/${id}/sign`,
          { shown },
          { 'sec-fetch-site': 'cross-site' },
        )
        assert.equal(foreign.statusCode, 403)
        const long = await browser.post(`/proposals/${id}/reject`, { reason: 'x'.repeat(1_001) })
        assert.deepEqual([long.statusCode, /more than 1,?000 characters/.test(long.body)], [400, true])
        assert.equal((await browser.post(`/proposals/${id}/reject`, { reason: 'Not yet' })).statusCode, 303)
        assert.match((await page(id)).body, /You rejected it[\s\S]*Not yet/)
        // An account that opens no records has no proposals.
        await hospital.auth.addUser('officer', { fhir_user_id: '', admin: true })
        const officer = await hospital.auth.logIn('officer')
        assert.equal((await officer.get('/proposals')).headers.location, '/admin')
        await clear()
      })

      it('works for a patient, whose rights end at their own record', async () => {
        await hospital.write(condition('own'))
        await hospital.auth.addUser('alba', { fhir_user_id: 'Patient/juniper' })
        const alba = await hospital.auth.logIn('alba')
        const { db } = hospital.auth.store
        const now = hospital.auth.time.now
        const { id: userId } = await hospital.auth.findUser('alba')
        const proposer = { userId, clientId: 'scribe', grantId: 'g', patient: 'juniper' }
        const add = async (id: string) =>
          String(
            await createProposals(createSealer('test secret')).add(
              db,
              { action: 'patch', type: 'Condition', id, content: JSON.stringify(RESOLVE), reason: 'x' },
              proposer,
              { now, expiresAt: now + DAY_MS },
            ),
          )
        const own = await add('own')
        const shown = readForm((await alba.get(`/proposals/${own}`)).body).get('shown') ?? ''
        const reply = await alba.post(`/proposals/${own}/sign`, { shown })
        assert.equal(reply.statusCode, 303, reply.body)
        assert.match(JSON.stringify(await listProvenance(own)), /"verifier"[\s\S]*"Patient\/juniper"/)
        // Somebody else's record, whatever the proposal says.
        const other = await alba.get(`/proposals/${await add('other')}`)
        assert.match(other.body, /You cannot open this record/)
        assert.match(
          (await alba.get('/account/access-log')).body,
          /Signed a change of your record that an assistant had proposed/,
        )
        await clear()
      })

      it('names every reason of the table in the audit trail or on a page', async () => {
        const rows = await (await hospital.auth.store.trail.read())
          .selectFrom('audit_event')
          .select(['details', 'patient_id', 'status'])
          .where('kind', '=', 'proposal')
          .execute()
        const named = new Set(rows.map(({ details }) => JSON.parse(details ?? '{}').reason))
        const { 'proposal-reason-too-long': _, ...recorded } = PROPOSALS
        for (const reason of Object.keys(recorded)) assert(named.has(reason), reason)
        const events = new Set(rows.map(({ details }) => JSON.parse(details ?? '{}').event))
        assert(events.has('proposal-signed') && events.has('proposal-rejected'))
        assert(!JSON.stringify(rows).includes('unknown</i>'))
      })
    })
  })
