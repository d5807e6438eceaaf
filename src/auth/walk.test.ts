import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { LightMyRequestResponse } from 'fastify'
import { eachDatabaseIfThorough } from '../../test/support/databases.ts'
import { createAuditor, findRecords } from '../audit/index.ts'
import { parsePolicyText } from '../config/index.ts'
import { isFailure } from '../core/index.ts'
import { sha256 } from '../store/index.ts'
import { listRoutes } from '../web/http/index.ts'
import { NO_CONTROLS } from './base/context.ts'
import { TestAuthServer } from './testing/test-auth-server.ts'
import type { TestBrowser } from './testing/test-browser.ts'
import { makeEncounter, patient } from './testing/test-fhir-server.ts'

/** Every kind of account, with and without records. */
const ACCOUNTS = {
  clinician: {},
  'clinician without records': { fhir_user_id: '' },
  patient: { fhir_user_id: 'Patient/juniper' },
  'patient without a record': { fhir_user_id: 'Patient/nobody' },
  relative: { fhir_user_id: 'RelatedPerson/mother' },
  'relative of nobody': { fhir_user_id: 'RelatedPerson/nobody' },
  administrator: { admin: true },
  'administrator without records': { admin: true, fhir_user_id: '' },
  auditor: { auditor: true },
  'auditor without records': { auditor: true, fhir_user_id: '' },
  'administrator and auditor without records': { admin: true, auditor: true, fhir_user_id: '' },
} as const

type Kind = keyof typeof ACCOUNTS
const KINDS = Object.keys(ACCOUNTS) as readonly Kind[]

const RESOURCES = [
  patient('juniper', 'Juniper', 'Alba'),
  patient('ashlar', 'Ashlar', 'Tobias'),
  makeEncounter('enc-1', 'juniper', 'in-progress'),
  { resourceType: 'Practitioner', id: 'known', name: [{ family: 'Known' }] },
  { resourceType: 'RelatedPerson', id: 'mother', active: true, patient: { reference: 'Patient/juniper' } },
]

const POLICY = 'rules:\n  - clinicians: all\n    careTeams: own\n  - clinicians: all\n    patients: [juniper]'

/** What a form or query of any page may have; each page takes its own fields. */
const FIELDS = {
  patient: 'juniper',
  patientId: 'juniper',
  encounterId: 'enc-1',
  clientId: 'sallyport-app',
  client: 'sallyport-app',
  search: 'Juniper',
  text: POLICY,
  username: 'walked',
  displayName: 'Wren Walker',
  name: 'Walked app',
  password: 'a quite long phrase',
  current: 'sallyport',
  next: 'a quite long phrase',
  again: 'a quite long phrase',
  redirect_uris: 'https://app.example/callback',
  launch_url: 'https://app.example/launch',
  scope: 'launch patient/Patient.rs',
  issuer: 'https://idp.example',
  subject: 'subject-1',
  reason: 'walk',
} as const

/** The fields by which pages add or change users of each kind. */
const USERS = [
  { kind: 'clinician', fhirUser: 'Practitioner/known' },
  { kind: 'clinician', fhirUser: 'Practitioner/unknown', confirmed: 'Practitioner/unknown' },
  { kind: 'clinician', fhirUser: '', noRecords: '1' },
  { kind: 'account', fhirUser: 'Patient/juniper', relatedPersons: 'mother' },
  { kind: 'account', fhirUser: 'RelatedPerson/mother', relatedPersons: 'nobody' },
]

const BODIES = [
  {
    display_name: 'Wren Walker',
    username: 'walked',
    fhir_user: 'Practitioner/known',
    password: 'a quite long phrase',
  },
  { display_name: 'Wren Walker', username: 'walked', records: false, auditor: true },
  {
    display_name: 'Wren Walker',
    username: 'walked',
    fhir_user: 'Patient/juniper',
    related_persons: ['mother'],
  },
  { client_name: 'Walked', client_id: 'walked', redirect_uris: ['https://app.example/cb'], scope: 'openid' },
  {
    policy: POLICY,
    level: 'info',
    issuer: 'https://idp.example',
    subject: 's',
    password: 'a quite long phrase',
  },
  {},
]

eachDatabaseIfThorough((_name, open) => {
  describe('every page and endpoint of the auth server', () => {
    let auth: TestAuthServer
    let targets = 0
    let password_hash: string
    before(async () => {
      const store = await open()
      const policy = parsePolicyText(POLICY)
      if (isFailure(policy)) assert.fail()
      auth = await TestAuthServer.open(store, {
        audit: createAuditor({ store }),
        settings: { lab: true },
        resources: RESOURCES,
        controls: { ...NO_CONTROLS, getPolicy: () => policy },
      })
      for (const kind of KINDS) if (kind !== 'clinician') await auth.addUser(kind, ACCOUNTS[kind])
      const relative = await auth.findUser('relative')
      password_hash = relative.password_hash
      const row = { clinician_id: relative.id, related_person_id: 'mother' }
      await store.db.insertInto('account_related_person').values(row).execute()
      await auth.exchange(await auth.getCode(await auth.logIn()))
    })

    /** What the parameters of a path may be: a target that the request may change or remove, and nothing that exists. */
    async function fillPath(path: string): Promise<readonly string[]> {
      if (!path.includes(':')) return [path]
      return [path.replace(/:\w+/, await findTarget(path)), path.replace(/:\w+/, 'x')]
    }

    async function findTarget(path: string): Promise<string> {
      const { db } = auth.store
      const name = `target-${targets++}`
      if (/\/(?:clinicians|accounts)\//.test(path)) {
        const isAccount = path.includes('accounts') || targets % 2 === 0
        await auth.addUser(name, { fhir_user_id: isAccount ? 'Patient/ashlar' : 'known' })
        return (await auth.findUser(name)).id
      }
      if (/\/(?:apps|clients)\//.test(path)) {
        await auth.addClient({ client_id: name, auth_method: 'client_secret', secret_hash: sha256('s') })
        return name
      }
      if (path.includes('/grants/'))
        return (await db.selectFrom('grant').select('id').executeTakeFirst())?.id ?? 'x'
      if (path.includes('/keys/'))
        return (await db.selectFrom('signing_key').select('kid').executeTakeFirst())?.kid ?? 'x'
      if (path.includes('/sign-ins/'))
        return (await db.selectFrom('login').select('id_hash').executeTakeFirst())?.id_hash ?? 'x'
      if (path.includes('/audit/')) return String((await findRecords(auth.store, { limit: 1 }))[0]?.id ?? 'x')
      return path.includes('/policy/patients/') ? 'juniper' : 'x'
    }

    /** A page, a redirect, or a refusal in words. */
    function findFault({ statusCode, body, headers }: LightMyRequestResponse): string | undefined {
      if (statusCode >= 500) return `${statusCode}`
      if (statusCode < 400) return undefined
      const isPage = String(headers['content-type']).startsWith('text/html')
      const words = isPage ? /<h1>[^<]{3,}/ : /"(?:error_description|detail|title|diagnostics)":"[^"]{3,}/
      return words.test(body) ? undefined : `${statusCode} without words: ${body.slice(0, 200)}`
    }

    /** Undoes what the user changed about the own account, and signs in again if that ended. */
    async function restore(kind: Kind, browser: TestBrowser): Promise<void> {
      const columns = { password_hash, must_change_password: false, disabled: false, ...ACCOUNTS[kind] }
      await auth.store.db.updateTable('clinician').set(columns).where('username', '=', kind).execute()
      if ((await browser.get('/account')).statusCode === 200) return
      browser.cookies.clear()
      assert.equal((await browser.login(kind)).statusCode, 302, kind)
    }

    const faults: string[] = []
    const note = (what: string, response: LightMyRequestResponse) => {
      const fault = findFault(response)
      if (fault !== undefined) faults.push(`${what}: ${fault}`)
    }

    for (const kind of KINDS) {
      it(`responds to ${kind.startsWith('a') ? 'an' : 'a'} ${kind}, or refuses in words (HTTP-15)`, async () => {
        faults.length = 0
        const browser = await auth.logIn(kind)
        const routes = listRoutes(auth.app).filter(({ path }) => !path.startsWith('/admin/api/'))
        for (const { path } of routes.filter(({ method }) => method === 'GET'))
          for (const filled of await fillPath(path))
            for (const fields of [{}, FIELDS, { ...FIELDS, patient: 'Juniper' }]) {
              const query = new URLSearchParams(fields)
              const response = await browser.get(`${filled}?${query}`)
              note(`GET ${path} ${query.get('patient')}`, response)
              if (response.headers.location?.startsWith('/login')) await restore(kind, browser)
              if (response.statusCode === 403) break
            }
        for (const { method, path } of routes.filter(({ method }) => method !== 'GET'))
          for (const user of path.startsWith('/admin/clinicians/') ? USERS : [{}])
            for (const filled of await fillPath(path))
              for (const form of [{}, { ...FIELDS, username: `walked-${targets++}`, ...user }]) {
                assert.equal(method, 'POST')
                const response = await browser.post(filled, form)
                note(`POST ${path} ${JSON.stringify(user)}`, response)
                // Administrators change other accounts.
                if (!path.startsWith('/admin/')) await restore(kind, browser)
                if (response.statusCode === 403) break
              }
        assert.deepEqual([...new Set(faults)], [])
      })
    }

    it('responds to programs of the administration API, or refuses in words (HTTP-15)', async () => {
      faults.length = 0
      for (const scope of ['sallyport/admin', 'sallyport/admin.read']) {
        const client_id = scope.replace('/', '-')
        const secret = { auth_method: 'client_secret', secret_hash: sha256('s') } as const
        await auth.addClient({ client_id, ...secret, scope, redirect_uris: '[]', launch_url: null })
        const form = { grant_type: 'client_credentials', client_id, client_secret: 's', scope }
        const { access_token } = (await auth.requestToken(form)).json()
        for (const { method, path } of listRoutes(auth.app).filter(({ path }) =>
          path.startsWith('/admin/api/'),
        ))
          for (const payload of method === 'GET' ? [undefined] : BODIES)
            for (const url of await fillPath(path)) {
              const response = await auth.app.inject({
                method: method as 'GET',
                url,
                headers: { authorization: `Bearer ${access_token}` },
                ...(payload && { payload }),
              })
              note(`${scope} ${method} ${path} ${JSON.stringify(payload)}`, response)
            }
      }
      assert.deepEqual([...new Set(faults)], [])
    })
  })
})
