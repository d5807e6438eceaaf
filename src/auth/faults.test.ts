import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { Type } from 'typebox'
import { rsaPair } from '../../test/support/rsa-pair.ts'
import { createAuditor } from '../audit/index.ts'
import { parsePolicyText } from '../config/index.ts'
import { isFailure, isRecord } from '../core/index.ts'
import { Members } from '../endpoint/index.ts'
import { type Claims, signJwt } from '../jwt/index.ts'
import { createSealer, type Store, sha256 } from '../store/index.ts'
import { createLogger } from '../web/http/index.ts'
import { APP_FILTER, USER_FILTER } from './admin/base/find-named.ts'
import { readMembers } from './admin/subject/api.ts'
import { readFilters, refuseFilters } from './admin/subject/filters.ts'
import { findActor } from './admin/trail/audit-who.ts'
import { NO_CONTROLS } from './base/context.ts'
import { LIMITS } from './base/limits.ts'
import { AuthRefusal } from './base/refusal.ts'
import { readParameters } from './base/request.ts'
import { readLink } from './lab/read-link.ts'
import { checkAccessToken } from './oauth/access-token.ts'
import { createDescribedClients } from './oauth/agents/client-document.ts'
import {
  CLIENT_DEFAULTS,
  type ClientFault,
  type ClientProperties,
  findClientIdFault,
  ID_TAKEN,
  listClientFaults,
  readRegisteredKeys,
} from './oauth/clients/validate.ts'
import { readOptions } from './oauth/launch/options.ts'
import { readClientMetadata } from './oauth/register/metadata.ts'
import { listFormFaults } from './pages/parts/app-form/form.ts'
import { findSearchFault } from './patients/queries.ts'
import { addBackend, requestBackendToken } from './testing/backend.ts'
import { testSettings } from './testing/settings.ts'
import { decodeClaims, TestAuthServer } from './testing/test-auth-server.ts'
import { patient } from './testing/test-fhir-server.ts'
import { openTestStore } from './testing/test-store.ts'
import { type ProvedFactor, proveFactor, startEnrolment, storeFactor } from './users/factors/enrolment.ts'
import { REQUIRED, removeFactor } from './users/factors/own-factors.ts'
import { findNewPasswordFault } from './users/passwords.ts'
import { FAULTS, type FaultReason } from './words/faults.ts'

interface World {
  readonly auth: TestAuthServer
  readonly store: Store
}

/** Makes a fault: a failure or a refusal that has it, several faults, or the body of a response that tells it. */
type Way = (world: World) => unknown

const URL_START = 'https://app.example/'
const SEALER = createSealer('test secret')

const app = (changes: Partial<ClientProperties>, isByAdministrator = false): readonly ClientFault[] =>
  listClientFaults(
    {
      ...CLIENT_DEFAULTS,
      authMethod: 'none',
      scope: 'patient/Patient.rs',
      redirectUris: [URL_START],
      ...changes,
    },
    { isByAdministrator },
  )
const redirectUri = (url: string) => app({ redirectUris: [url] })
const form = (fields: object) => [
  ...listFormFaults(readParameters(fields), { isAdministrator: false }).values(),
]
const password = (text: string) =>
  findNewPasswordFault(text, {
    username: 'ashlar',
    displayName: 'Dr. Juniper',
    brand: 'Harbour',
    minLength: 8,
  })
const link = (parameters: object) => readLink(parameters)
const option = (fields: object) => readOptions(readParameters(fields))
const item = (...items: readonly unknown[]) => option({ fhirContext: JSON.stringify(items) })

async function describeBy(document: unknown, { store }: World, id = DOCUMENT.client_id) {
  const clients = createDescribedClients({
    store,
    settings: {
      ...testSettings,
      agents: { ...testSettings.agents, enabled: true, clientHosts: ['agent.example'] },
    },
    clock: () => 0,
    fetchDocument: async () => ({ json: document, freshForMs: 0 }),
  })
  return clients.refresh(id)
}

const DOCUMENT = {
  client_id: 'https://agent.example/client',
  client_name: 'Agent',
  redirect_uris: ['https://agent.example/back'],
}

const { privateKey, publicKey } = rsaPair()
const KEY = { ...publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'RS256', use: 'sig' }

/** A token of this server, with these claims changed. */
async function checkToken(changes: Claims, { auth, store }: World) {
  const { issuerUrl, fhirBaseUrl } = auth.settings
  const claims = {
    iss: issuerUrl,
    aud: fhirBaseUrl,
    jti: 'grant.token',
    client_id: 'plain',
    scope: 'openid',
    exp: auth.time.now / 1000 + 60,
    ...changes,
  }
  const token = await signJwt({ alg: 'RS256', typ: 'at+jwt', kid: 'k' }, claims, privateKey)
  const context = {
    settings: auth.settings,
    store,
    rules: auth.rules,
    clock: () => auth.time.now,
    keys: { listPublicKeys: async () => [KEY] },
  }
  return checkAccessToken(context as unknown as Parameters<typeof checkAccessToken>[0], token)
}

/** The log has the fault. */
async function introspect(token: string, { auth }: World): Promise<void> {
  const form = { token, client_id: 'owner', client_secret: 's' }
  await auth.openBrowser().post('/oauth2/introspect', form)
}

async function sendRecords(body: object, { auth }: World): Promise<string> {
  const token = await requestBackendToken(auth, 'fhir-server', 'sallyport/audit')
  const response = await auth.app.inject({
    method: 'POST',
    url: '/audit-records',
    headers: { authorization: `Bearer ${token}` },
    payload: {
      issuer: auth.settings.issuerUrl,
      fhirBaseUrl: auth.settings.fhirBaseUrl,
      records: [],
      ...body,
    },
  })
  return response.body
}

async function order(body: object | readonly unknown[], { auth }: World): Promise<string> {
  const token = await requestBackendToken(auth, 'ehr', '__launch-contexts.c')
  const response = await auth.app.inject({
    method: 'POST',
    url: '/launch-contexts',
    headers: { authorization: `Bearer ${token}` },
    payload: body,
  })
  return response.body
}

async function openLink(parameters: Readonly<Record<string, string>>, { auth }: World): Promise<string> {
  const browser = await auth.logIn()
  return (await browser.get(`/lab/launch?${new URLSearchParams(parameters)}`)).body
}

async function openLab(parameters: Readonly<Record<string, string>>, { auth }: World): Promise<string> {
  const browser = await auth.logIn()
  return (await browser.get(`/lab?${new URLSearchParams(parameters)}`)).body
}

/** A page for administrators. */
async function openAdmin(path: string, { auth }: World, username = 'root'): Promise<string> {
  return (await (await auth.logIn(username)).get(path)).body
}

/** Stores a factor for the clinician, or what the store says of it. */
async function store(factor: Pick<ProvedFactor, 'store'>, { store: { db } }: World) {
  const { id } = await db.selectFrom('clinician').select('id').executeTakeFirstOrThrow()
  const proved: ProvedFactor = { kind: 'passkey', methods: ['hwk'], ...factor }
  return db.transaction().execute(trx => storeFactor(trx, id, proved))
}

const prove = (answer: { readonly code?: string; readonly credential?: string }, { auth }: World) => {
  const context = { sealer: SEALER, clock: () => 0, settings: auth.settings }
  return proveFactor(context, startEnrolment(context, 'a'), {
    userId: 'a',
    code: undefined,
    credential: undefined,
    ...answer,
  })
}

const WAYS: Readonly<Record<FaultReason, Way>> = {
  'client-id-malformed': () => findClientIdFault(' '),
  'client-id-reserved': () => findClientIdFault('sallyport-portal'),
  'client-id-in-use': () => ID_TAKEN,
  'name-missing': () => form({}),
  'line-malformed': () => app({ name: 'a\nb' }),
  'contacts-too-many': () => app({ contacts: Array(LIMITS.contacts + 1).fill('a@b.example') }),
  'urls-too-many': () => app({ redirectUris: Array(LIMITS.urls + 1).fill(URL_START) }),
  'url-too-long': () => redirectUri(URL_START.padEnd(LIMITS.urlCharacters + 1, 'x')),
  'url-not-absolute': () => redirectUri('/callback'),
  'url-not-encoded': () => redirectUri('https://app.example/é'),
  'url-host-not-plain': () => redirectUri('https://a!b.example/'),
  'url-with-fragment': () => redirectUri('https://app.example/#'),
  'url-with-credentials': () => redirectUri('https://me:secret@app.example/'),
  'url-not-of-a-page': () => app({ logoUrl: 'ftp://app.example/' }),
  'url-not-https': () => app({ websiteUrl: 'http://app.example/' }),
  'redirect-uri-with-wildcard': () => redirectUri('https://app.example/*'),
  'redirect-uri-scheme': () => redirectUri('http://app.example/'),
  'redirect-uri-missing': () => app({ redirectUris: [] }),
  'redirect-uri-of-grant-missing': () =>
    readClientMetadata({
      token_endpoint_auth_method: 'private_key_jwt',
      jwks_uri: URL_START,
      scope: 'system/Patient.rs',
      grant_types: ['authorization_code'],
    }),
  'kind-missing': () => form({}),
  'keys-without-kind': () => form({ auth_method: 'none', jwks: '{}' }),
  'keys-url-not-https': () => app({ jwksUrl: 'http://app.example/' }),
  'keys-not-json': () => form({ auth_method: 'private_key_jwt', jwks: '{' }),
  'keys-private': () => readRegisteredKeys({ keys: [privateKey.export({ format: 'jwk' })] }),
  'keys-malformed': () => readRegisteredKeys({}),
  'keys-twice': () => app({ authMethod: 'private_key_jwt', jwks: '{}', jwksUrl: URL_START }),
  'keys-missing': () => app({ authMethod: 'private_key_jwt' }),
  'scopes-missing': () => app({ scope: ' ' }),
  'scope-malformed': () => app({ scope: 'patient/"' }),
  'scope-misspelled': () => app({ scope: 'patient/condition.rs' }),
  'scope-type-unknown': () => app({ scope: 'patient/Xylophone.rs' }),
  'scope-type-misspelled': () => app({ scope: 'patient/Conditions.rs' }),
  'scope-needs-keys': () => app({ scope: 'system/Patient.rs' }),
  'scope-of-administrators': () => form({ scope: '__launch-contexts.c' }),
  'program-without-credentials': () => app({ scope: 'sallyport/admin' }, true),
  'program-with-redirect-uri': () => app({ scope: 'sallyport/admin', authMethod: 'client_secret' }, true),
  'program-with-launch-url': () =>
    app(
      {
        scope: 'sallyport/admin',
        authMethod: 'client_secret',
        redirectUris: [],
        launchUrl: URL_START,
      },
      true,
    ),
  'scope-list-too-long': () => app({ scope: 'x'.repeat(8_001) }),
  'scopes-too-many': () => app({ scope: 'openid '.repeat(101) }),
  'scope-parameters-too-many': () => app({ scope: `patient/Observation.rs?${'a=b&'.repeat(6)}a=b` }),
  'scope-combined-too-many': () => app({ scope: 'patient/Observation.rs?a=b&c=d '.repeat(26) }),
  'document-not-an-object': world => describeBy([], world),
  'document-of-another-client': world => describeBy({ ...DOCUMENT, client_id: 'other' }, world),
  'document-without-name': world => describeBy({ ...DOCUMENT, client_name: 1 }, world),
  'document-with-secret': world => describeBy({ ...DOCUMENT, client_secret: 's' }, world),
  'document-without-redirect-uri': world => describeBy({ ...DOCUMENT, redirect_uris: [] }, world),
  'document-needs-secret': world =>
    describeBy({ ...DOCUMENT, token_endpoint_auth_method: 'client_secret_basic' }, world),
  'password-too-short': () => password('x'),
  'password-too-long': () => password('xK4'.repeat(30)),
  'password-with-nul': () => password('xK4-violet\0'),
  'password-with-username': () => password('xK4-ashlar'),
  'password-with-name': () => password('xK4-juniper'),
  'password-common': () => password('P@ssw0rd2026!'),
  'password-with-brand': () => password('xK4-har-bour'),
  'password-sequence': () => password('9876543210'),
  'factor-gone': ({ auth, store }) =>
    removeFactor(
      { store, rules: auth.rules },
      { user: { id: 'nobody' } } as Parameters<typeof removeFactor>[1],
      'gone',
      async () => {},
    ),
  'factor-required': () => REQUIRED,
  'factors-too-many': async world => {
    const { id } = await world.store.db.selectFrom('clinician').select('id').executeTakeFirstOrThrow()
    const factor = { clinician_id: id, kind: 'passkey', name: 'P', created_at: 0 } as const
    const rows = Array.from({ length: LIMITS.factors }, (_, at) => ({ ...factor, id: `f${at}` }))
    await world.store.db.insertInto('factor').values(rows).execute()
    const stored = await store({ store: async () => true }, world)
    await world.store.db.deleteFrom('factor').execute()
    return stored
  },
  'factor-known': world => store({ store: async () => false }, world),
  'passkey-not-verified': world => prove({ credential: '{}' }, world),
  'code-not-current': world => prove({ code: '000000' }, world),
  'token-not-ours': ({ auth, store }) =>
    checkAccessToken(
      { settings: auth.settings, store, keys: { listPublicKeys: async () => [] } } as unknown as Parameters<
        typeof checkAccessToken
      >[0],
      'x',
    ),
  'token-unknown': world => introspect('x', world),
  'token-of-another-client': async world =>
    introspect(await requestBackendToken(world.auth, 'ehr', 'system/*.rs'), world),
  'token-of-another-issuer': world => checkToken({ iss: 'https://other.example' }, world),
  'token-for-another-audience': world => checkToken({ aud: 'https://other.example' }, world),
  'token-incomplete': world => checkToken({ jti: undefined }, world),
  'token-expired': world => checkToken({ exp: 0 }, world),
  'token-revoked': async world => {
    const { now } = world.auth.time
    const revoked = { id: 'revoked', revoked_at: now, expires_at: now + 1 }
    await world.store.db.insertInto('revocation').values(revoked).execute()
    return checkToken({ jti: 'revoked.token' }, world)
  },
  'token-without-client': world => checkToken({ jti: 'client-nobody.token' }, world),
  'token-without-grant': world => checkToken({}, world),
  'body-not-an-object': world => order([], world),
  'member-unknown': world => order({ patients: [] }, world),
  'member-not-text': world => order({}, world),
  'patient-not-an-id': world => order({ patient: 1 }, world),
  'encounter-not-an-id': world => order({ encounter: 1 }, world),
  'member-not-boolean': world => order({ need_patient_banner: 'yes' }, world),
  'member-too-long': world => order({ intent: 'x'.repeat(LIMITS.contextTextCharacters + 1) }, world),
  'banner-malformed': () => option({ needPatientBanner: 'yes' }),
  'option-too-long': () => option({ intent: 'x'.repeat(LIMITS.contextTextCharacters + 1) }),
  'fhir-context-malformed': () => item(...Array(LIMITS.fhirContextItems + 1)),
  'fhir-context-too-long': () =>
    item(...Array(20).fill({ canonical: `https://a.example/${'x'.repeat(900)}` })),
  'fhir-context-item-malformed': () => item(1),
  'fhir-context-member-unknown': () => item({ name: 'x' }),
  'fhir-context-item-empty': () => item({}),
  'fhir-context-canonical-malformed': () => item({ canonical: 'x' }),
  'fhir-context-identifier-malformed': () => item({ identifier: 'x' }),
  'fhir-context-type-unknown': () => item({ identifier: {}, type: 'x' }),
  'fhir-context-role-malformed': () => item({ identifier: {}, role: 'x' }),
  'fhir-context-reference-malformed': () => item({ reference: 'x' }),
  'fhir-context-type-differs': () => item({ reference: 'ImagingStudy/1', type: 'Patient' }),
  'fhir-context-of-the-launch': () => item({ reference: 'Patient/1' }),
  'parameter-repeated': () => link({ kind: ['ehr', 'ehr'] }),
  'parameter-of-ehr-launch': () => link({ kind: 'standalone', client: 'plain', patient: 'juniper' }),
  'value-not-known': () => link({ kind: 'x' }),
  'value-not-a-switch': () => link({ skip_login: 'x' }),
  'pkce-malformed': () => link({ pkce: 'x' }),
  'lifetime-malformed': () => link({ token_ttl: '0' }),
  'link-client-missing': () => link({ launch_url: URL_START }),
  'link-client-malformed': world =>
    openLink({ launch_url: URL_START, client: 'a b', patient: 'juniper' }, world),
  'link-client-disabled': world =>
    openLink({ launch_url: URL_START, client: 'disabled', patient: 'juniper' }, world),
  'link-of-backend-service': world => openLink({ kind: 'backend', client: 'ehr' }, world),
  'link-user-not-a-patient': world =>
    openLink({ kind: 'patient', client: 'plain', user: 'clinician' }, world),
  'link-app-unknown': world => openLab({ client: 'nobody' }, world),
  'link-user-unknown': world => openLab({ client: 'plain', user: 'nobody' }, world),
  'link-patients-many': world => openLab({ client: 'plain', patient: 'a' }, world),
  'link-patient-unknown': world => openLab({ client: 'plain', patient: 'nobody' }, world),
  'link-patient-malformed': world => openLink({ client: 'plain' }, world),
  'trail-not-kept': async ({ store }) => {
    const auth = await TestAuthServer.open(store)
    return sendRecords({}, { auth, store })
  },
  'batch-malformed': world => sendRecords({ records: 1 }, world),
  'batch-of-another-issuer': world => sendRecords({ issuer: 'x' }, world),
  'batch-of-another-fhir-server': world => sendRecords({ fhirBaseUrl: 'x' }, world),
  'batch-too-long': world => sendRecords({ records: Array(LIMITS.auditRecords + 1).fill(0) }, world),
  'batch-without-ids': world => sendRecords({ records: [{}] }, world),
  'record-not-an-object': world => sendRecords({ records: [{ id: 'a', record: 1 }] }, world),
  'record-member-unknown': world => sendRecords({ records: [{ id: 'a', record: { x: 1 } }] }, world),
  'record-member-malformed': world => sendRecords({ records: [{ id: 'a', record: { at: 'x' } }] }, world),
  'record-of-another': async world => {
    const { auth } = world
    const tokens = await auth.exchange(await auth.getCode(await auth.logIn()))
    const [launch] = String(decodeClaims(tokens.json().access_token).jti).split('.')
    const record = { at: auth.time.now, allowed: true, status: 200, client: 'other', launch }
    return sendRecords({ records: [{ id: 'a', record }] }, world)
  },
  'registered-member-invalid': () => readClientMetadata({ redirect_uris: ['x'] }),
  'value-invalid': () => readClientMetadata({ redirect_uris: ['ftp://x/'] }),
  'document-property-invalid': world => {
    const client_id = `${DOCUMENT.client_id}/${'a'.repeat(200)}`
    return describeBy({ ...DOCUMENT, client_id }, world, client_id)
  },
  'member-not-known': () => readMembers(ONE_MEMBER, { name: 'a', other: 1 }, { isText: false }),
  'member-missing': () => readMembers(ONE_MEMBER, {}, { isText: false }),
  'member-invalid': () => readMembers(ONE_MEMBER, { name: 1 }, { isText: false }),
  'not-as-expected': () => readMembers(ONE_MEMBER, [], { isText: false }),
  'link-style-malformed': () => link({ style: 'x' }),
  'meant-other': () => link({ clint: 'x' }),
  'filter-not-known': () => refuseFilters(readFilters(ONE_FILTER, { x: '1' }, 'name').faults),
  'filter-invalid': () => refuseFilters(readFilters(ONE_FILTER, { on: '1' }, 'name').faults),
  'filters-known': () => refuseFilters(readFilters(ONE_FILTER, { x: '1' }, 'name').faults),
  'filters-none': () => refuseFilters(readFilters({}, { x: '1' }, 'name').faults),
  'user-not-known': async ({ store }) =>
    (await USER_FILTER.find({ store, actor: COMMAND }, 'nobody')).unknown,
  'app-not-known': async ({ store }) => (await APP_FILTER.find({ store, actor: COMMAND }, 'nothing')).unknown,
  'patient-not-known': world => openAdmin('/admin/access?patient=nobody', world),
  'patients-many': world => openAdmin('/admin/access?patient=many', world),
  'patients-cut': async world => {
    world.auth.fhir.cut(1)
    const text = await openAdmin('/admin/access?patient=many', world)
    world.auth.fhir.cut(undefined)
    return text
  },
  'patients-unavailable': async world => {
    world.auth.fhir.fail('no-response')
    const text = await openAdmin('/admin/access?patient=nobody', world)
    world.auth.fhir.fail(undefined)
    return text
  },
  'patients-hidden': world => openAdmin('/admin/access?patient=nobody', world, 'officer'),
  'patients-hidden-here': async world => {
    const settings = { audit: { ...testSettings.audit, patientSearch: true } }
    const auth = await TestAuthServer.open(world.store, { settings })
    return openAdmin('/admin/access?patient=nobody', { ...world, auth }, 'officer')
  },
  'patient-absent': world => openAdmin('/admin/policy?patient=Patient/nobody', world),
  'care-teams-unreadable': async world => {
    const policy = parsePolicyText('rules: [{ clinicians: all, careTeams: own }]')
    assert.ok(!isFailure(policy))
    const { fetch } = world.auth.fhir
    const auth = await TestAuthServer.open(world.store, {
      controls: { ...NO_CONTROLS, getPolicy: () => policy },
      fetch: async (...request) =>
        String(request[0]).includes('/CareTeam') ? Response.json({}, { status: 404 }) : fetch(...request),
    })
    return openAdmin('/admin/policy?patient=Patient/p1', { ...world, auth })
  },
  'search-too-long': () => findSearchFault('a '.repeat(LIMITS.searchWords + 1)),
  'nobody-known': async ({ store }) => (await findActor({ store }, 'nobody')).unknown,
}

const ONE_MEMBER = Members({ name: Type.String() })
const ONE_FILTER = { on: { schema: Type.Boolean(), about: 'Whether it is on.' } }
const COMMAND = { kind: 'command', operator: 'tester' } as const

describe('every fault of a value', () => {
  const open = openTestStore()
  const log: string[] = []
  let world: World

  before(async () => {
    const kept = await open()
    const auth = await TestAuthServer.open(kept, {
      audit: createAuditor({ store: kept }),
      logger: createLogger({ level: 'info', destination: { write: line => log.push(line) } }),
      settings: { lab: true },
      resources: [
        patient('juniper', 'Juniper', 'Alba'),
        ...Array.from({ length: 60 }, (_, at) => patient(`p${at}`, `Many${at}`, 'Alba')),
      ],
    })
    world = { auth, store: kept }
    await addBackend(auth, 'ehr', '__launch-contexts.c system/*.rs')
    await addBackend(auth, 'fhir-server', 'sallyport/audit')
    await auth.addClient({ client_id: 'owner', auth_method: 'client_secret', secret_hash: sha256('s') })
    await auth.addClient({ client_id: 'plain' })
    await auth.addUser('root', { admin: true })
    await auth.addUser('officer', { admin: true, fhir_user_id: '' })
    await auth.addClient({ client_id: 'disabled', disabled: true })
  })

  for (const [reason, way] of Object.entries(WAYS)) {
    it(`is told: ${reason}`, async () => {
      log.length = 0
      const texts = [...listTexts(await way(world)), ...log].join('\n').replaceAll('\\"', '"')
      const pieces = FAULTS[reason as FaultReason].split(/\{\w+\}/)
      const pattern = pieces.map(piece => RegExp.escape(piece)).join('.+')
      assert.match(texts, new RegExp(pattern, 'i'), texts)
    })
  }
})

function listTexts(found: unknown): readonly string[] {
  if (typeof found === 'string') return [found]
  if (found instanceof AuthRefusal) return [found.description]
  if (Array.isArray(found)) return found.flatMap(listTexts)
  return isRecord(found) && typeof found.text === 'string' ? [found.text] : []
}
