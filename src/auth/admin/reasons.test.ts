import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { Type } from 'typebox'
import { createAuditor } from '../../audit/index.ts'
import { findOwn, isFailure } from '../../core/index.ts'
import { createSealer, sha256 } from '../../store/index.ts'
import { NO_CONTROLS } from '../base/context.ts'
import { LIMITS } from '../base/limits.ts'
import { CLIENT_DEFAULTS } from '../oauth/clients/validate.ts'
import type { AuthContext } from '../oauth/context.ts'
import { testSettings } from '../testing/settings.ts'
import { TestAuthServer } from '../testing/test-auth-server.ts'
import { openTestStore } from '../testing/test-store.ts'
import { ADMINISTRATION, type AdminReason } from '../words/administration.ts'
import { endExport } from './access/exports.ts'
import { revokeGrantById } from './access/grants.ts'
import { resetSecondFactor, unlockUser } from './accounts/change-sign-in.ts'
import { addUser, removeUser } from './accounts/change-user.ts'
import { checkLink, checkPassword, listFaultsOfNew, listUserFaults } from './accounts/check-user.ts'
import { linkUser, unlinkUser } from './accounts/link-user.ts'
import { refuseOwnAccount } from './accounts/perform-on-user.ts'
import { endSignInById } from './accounts/sign-ins.ts'
import { addClient, removeClient, rotateClientSecret } from './apps/clients.ts'
import { type Admin, AdminFailure, recordAction } from './base/action.ts'
import { rotateKeys, withdrawKey } from './server/keys.ts'
import { explainPatientAccess } from './server/policy.ts'
import { testProvider } from './server/providers.ts'
import { reloadSettings } from './server/system.ts'
import { readMembers } from './subject/api.ts'
import { readFilters, refuseFilters } from './subject/filters.ts'
import { exportRecords } from './trail/audit.ts'
import { checkFile, checkFileInTurn } from './trail/check-file.ts'
import { startVerification } from './trail/verification.ts'

interface World {
  readonly auth: TestAuthServer
  readonly admin: Admin
  /** The text of a refused request to the API, or of an error page. */
  readonly api: (path: string) => Promise<string>
  readonly page: (path: string) => Promise<string>
}

const OPERATION = { name: 'keys rotate', signIn: 'asks' } as const
const sealer = createSealer('test secret')
const BASE = { fhirBaseUrl: 'http://localhost:8080/fhir' }
const NEW = {
  kind: 'clinician',
  username: 'new-one',
  displayName: 'New',
  fhirUser: 'Practitioner/1',
} as const

const ACCOUNT = { ...NEW, kind: 'account', fhirUser: 'Patient/1' } as const

const WAYS: Readonly<Record<AdminReason, (world: World) => unknown>> = {
  'not-an-administrator': ({ admin }) =>
    recordAction({ ...admin, mayAct: async () => false }, { operation: OPERATION }),
  'sign-in-too-old': ({ admin }) =>
    recordAction(
      { ...admin, actor: { kind: 'clinician', id: 'a', fhirUserId: 'p', authTime: 0 } },
      { operation: OPERATION },
    ),
  'member-malformed': () => readMembers(Type.Object({ x: Type.String() }), { x: '\0' }, { isText: false }),
  'filters-invalid': () => refuseFilters(readFilters({}, { colour: 'red' }, 'name').faults),
  'members-invalid': () => readMembers(Type.Object({ x: Type.String() }), { x: 1 }, { isText: false }),
  'client-unknown': ({ admin }) => removeClient(admin, 'nobody'),
  'client-id-taken': ({ admin }) => addClient(admin, 'plain', APP),
  'client-property-invalid': ({ admin }) => addClient(admin, 'other', { ...APP, redirectUris: ['no URL'] }),
  'client-without-secret': ({ admin }) => rotateClientSecret(admin, 'plain'),
  'user-unknown': ({ admin }) => removeUser(admin, { username: 'nobody' }),
  'own-account': ({ admin }) =>
    refuseOwnAccount(
      { ...admin, actor: { kind: 'clinician', id: 'a', fhirUserId: 'p', authTime: 0 } },
      'a',
      'disable',
    ),
  'username-taken': ({ admin }) => addUser(admin, { ...NEW, username: 'clinician' }),
  'username-malformed': () => listFaultsOfNew({ ...NEW, username: ' ' })[0],
  'text-malformed': () => listUserFaults({ ...NEW, displayName: '' })[0],
  'fhir-user-malformed': () => listUserFaults({ ...NEW, fhirUser: 'Patient/1' })[0],
  'records-needed': () => listUserFaults({ ...NEW, kind: 'account', fhirUser: '', records: false })[0],
  'fhir-user-without-records': () => listUserFaults({ ...NEW, records: false })[0],
  'too-many-related-persons': () =>
    listUserFaults({ ...ACCOUNT, relatedPersons: Array.from({ length: 1000 }, (_, at) => `r-${at}`) })[0],
  'related-person-malformed': () => listUserFaults({ ...ACCOUNT, relatedPersons: ['?'] })[0],
  'clinician-with-related-persons': () => listUserFaults({ ...NEW, relatedPersons: ['r-1'] })[0],
  'administrator-not-clinician': () => listUserFaults({ ...ACCOUNT, admin: true })[0],
  'auditor-not-clinician': () => listUserFaults({ ...ACCOUNT, auditor: true })[0],
  'two-roles': () => listUserFaults({ ...NEW, admin: true, auditor: true })[0],
  'password-unfit': ({ admin }) =>
    checkPassword(
      { ...admin, settings: { ...testSettings, minPasswordLength: 8 } },
      { username: 'u', displayName: 'U' },
      'short',
    ),
  'password-and-link': ({ admin }) => checkLink(admin, { withLink: true, password: 'x' }),
  'passwords-off': ({ admin }) =>
    checkLink({ ...admin, rules: { ...admin.rules, passwords: false } }, { withLink: true }),
  'no-second-factor': ({ admin }) => resetSecondFactor(admin, { username: 'clinician' }, { keepApps: false }),
  'account-not-locked': ({ admin }) => unlockUser(admin, { username: 'clinician' }),
  'identity-malformed': ({ admin }) =>
    linkUser(admin, { username: 'clinician' }, { issuer: '', subject: 'x' }),
  'link-unknown': ({ admin }) =>
    unlinkUser(admin, { username: 'clinician' }, { issuer: 'https://x.example', subject: 'x' }),
  'sign-in-unknown': ({ admin }) => endSignInById(admin, 'x'),
  'grant-unknown': ({ admin }) => revokeGrantById(admin, 'x'),
  'export-unknown': ({ admin }) => endExport(admin, 'x'),
  'patient-id-malformed': ({ admin }) => explainPatientAccess(admin, {} as AuthContext, '?'),
  'key-unknown': ({ admin }) => withdrawKey(admin, sealer, 'x'),
  'keys-of-another-secret': ({ admin }) => rotateKeys(admin, createSealer('another secret')),
  'provider-unknown': ({ admin }) => testProvider(admin, 'x'),
  'settings-invalid': ({ admin }) => {
    return reloadSettings(admin, { ...NO_CONTROLS, reload: async () => ({ problems: ['no'] }) })
  },
  'verification-running': async ({ admin }) => {
    const row = { name: 'verification', value: '{"state":"running"}', expires_at: null }
    await startVerification(admin, sealer, {})
    await admin.store.db
      .updateTable('runtime_value')
      .set({ value: row.value, changed_at: admin.clock() })
      .where('name', 'like', '%verif%')
      .execute()
    return startVerification(admin, sealer, {})
  },
  'url-malformed': ({ api }) => api('/clients/%00'),
  'time-malformed': ({ api }) => api('/audit?since=2026-99-99'),
  'filter-unknown': ({ api }) => api('/audit?user=nobody'),
  'patient-not-found': ({ api }) => api('/policy/patients/nobody'),
  'fhir-server-unavailable': async ({ auth, api }) => {
    auth.fhir.fail('no-response')
    const response = await api('/policy/patients/juniper')
    auth.fhir.fail(undefined)
    return response
  },
  'client-not-shown': ({ page }) => page('/apps/nobody/edit'),
  'key-not-shown': ({ page }) => page('/keys/nobody/withdraw'),
  'user-not-shown': ({ page }) => page('/clinicians/nobody/disable'),
  'record-unknown': ({ page }) => page('/audit/0'),
  'exports-running': async ({ admin }) => {
    const wanted = { ...BASE, meant: {}, unknown: [] }
    const running = await Promise.all(
      Array.from({ length: LIMITS.exports }, () => exportRecords(admin, 'csv', wanted)),
    )
    const parts = running.flatMap(it => (isFailure(it) ? [] : [it]))
    for (const part of parts) await part.next()
    const refused = await exportRecords(admin, 'csv', wanted)
    for (const part of parts) await part.return(undefined)
    return refused
  },
  'file-checks-running': async ({ admin }) => {
    const { promise, resolve } = Promise.withResolvers<string>()
    async function* wait() {
      yield await promise
    }
    const running = Array.from({ length: LIMITS.fileChecks }, () => checkFileInTurn(admin, wait(), BASE))
    const refused = await checkFileInTurn(admin, wait(), BASE)
    resolve('')
    await Promise.all(running)
    return refused
  },
  // Another server inserts the key of this generation first, which only PostgreSQL allows.
  'keys-rotated-meanwhile': async ({ admin }) => {
    const { db } = admin.store
    await sql`CREATE TRIGGER late BEFORE INSERT ON signing_key BEGIN SELECT RAISE(IGNORE); END`.execute(db)
    const refused = await rotateKeys(admin, sealer)
    await sql`DROP TRIGGER late`.execute(db)
    return refused
  },
  'patient-search-unavailable': async ({ auth, page }) => {
    auth.fhir.fail('no-response')
    const body = await page('/policy?patient=Juniper')
    auth.fhir.fail(undefined)
    return body
  },
  'patient-search-not-permitted': async ({ auth }) => {
    await auth.addUser('clerk', { admin: true, fhir_user_id: '' })
    const browser = await auth.logIn('clerk')
    return (await browser.get('/admin/policy?patient=Alba+Juniper')).body
  },
  'user-has-many-grants': async ({ auth, admin }) => {
    await auth.addUser('busy')
    const { id: clinician_id } = await auth.findUser('busy')
    const row = { client_id: 'plain', clinician_id, scope: '', auth_time: 1, created_at: 1, last_used_at: 1 }
    for (let from = 0; from < 1_200; from += 400) {
      const rows = Array.from({ length: 400 }, (_, at) => ({ ...row, id: `busy-${from + at}` }))
      await auth.store.db.insertInto('grant').values(rows).execute()
    }
    return removeUser(admin, { username: 'busy' })
  },
  'verification-failed': async ({ admin }) => {
    await admin.store.db.deleteFrom('runtime_value').where('name', 'like', '%verif%').execute()
    const fails = () => Promise.reject(new Error('no disk'))
    return startVerification(
      { ...admin, audit: { ...admin.audit, record: fails, recordIn: fails } },
      sealer,
      {},
    )
  },
  'trail-head-malformed': ({ admin }) => startVerification(admin, sealer, { head: 'x' }),
  'file-not-an-export': ({ admin }) => checkFile(admin, ['a,b\n1,2\n'], BASE),
  'file-line-invalid': ({ admin }) => checkFile(admin, ['{"resourceType":"Patient"}\n'], BASE),
}

const APP = {
  ...CLIENT_DEFAULTS,
  redirectUris: ['https://a.example/'],
  scope: 'openid',
  authMethod: 'none',
} as const

describe('the reasons of administration', () => {
  const open = openTestStore()
  let world: World
  before(async () => {
    const store = await open()
    const audit = createAuditor({ store })
    const auth = await TestAuthServer.open(store, { audit })
    await auth.addClient({ client_id: 'plain' })
    const actor = { kind: 'client', id: 'console' } as const
    const clock = () => auth.time.now
    await auth.addClient({
      client_id: 'program',
      auth_method: 'client_secret',
      secret_hash: sha256('top'),
      scope: 'sallyport/admin',
    })
    await auth.addUser('root', { admin: true })
    const browser = await auth.logIn('root')
    const api = async (path: string) => {
      const form = { grant_type: 'client_credentials', scope: 'sallyport/admin' }
      const secret = { client_id: 'program', client_secret: 'top' }
      const { access_token } = (await auth.requestToken({ ...form, ...secret })).json()
      const headers = { authorization: `Bearer ${access_token}` }
      return (await auth.openBrowser().get(`/admin/api${path}`, headers)).json().error_description
    }
    const page = async (path: string) => (await browser.get(`/admin${path}`)).body
    const admin = { store, audit, clock, rules: auth.rules, actor, mayAct: async () => true }
    world = { auth, admin, api, page }
  })

  for (const [reason, happen] of Object.entries(WAYS))
    it(`${reason} is returned, and changes nothing (ADMIN-3)`, async () => {
      const failure = await happen(world)
      if (typeof failure === 'string') return assert.match(failure, makePattern(reason))
      assert(failure instanceof AdminFailure, `${reason} is not a failure`)
      assert.equal(failure.reason, reason)
      assert.match(failure.sentence, /^[^{}…]+\.$/)
    })
})

/** The words of the reasons, with the faults of the requests that are only a fact. */
const FOUND = {
  ...ADMINISTRATION,
  'filter-unknown': { sentence: 'No account, app, FHIR user or operator is known as nobody' },
  'patient-not-found': { sentence: 'There is no patient nobody' },
  'patient-search-unavailable': {
    sentence: 'The FHIR server is unavailable, so it is not known whether there is a patient Juniper',
  },
  'patient-search-not-permitted': {
    sentence: 'Your account opens no patient records, so it finds none by name or number.+',
  },
}

/** The sentence of a reason, whatever its facts. */
function makePattern(reason: string): RegExp {
  const { sentence = '' } = findOwn<{ readonly sentence: string }>(FOUND, reason) ?? {}
  assert.notEqual(sentence, '')
  return new RegExp(`${sentence.slice(1).replace(/\{\w+\}/g, '.+')}\\.`)
}
