import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { before, describe, it } from 'node:test'
import type { LightMyRequestResponse } from 'fastify'
import { API_REASONS, LAUNCH_REASONS } from '../app-reasons/index.ts'
import { createAuditor } from '../audit/index.ts'
import { isFailure, type StoredFacts } from '../core/index.ts'
import { FHIR_REASONS } from '../fhir/index.ts'
import { createSealer, sha256 } from '../store/index.ts'
import { readDetails } from './base/audit.ts'
import type { FetchedDocument } from './base/fetch-document.ts'
import { LIMITS } from './base/limits.ts'
import type { AuthRefusal } from './base/refusal.ts'
import { issueLaunchByCommand, issueTokenByCommand } from './lab/command-line.ts'
import { MAX_CLIENTS } from './lab/limits.ts'
import { createDescribedClients } from './oauth/agents/client-document.ts'
import { type Approval, issueCode } from './oauth/authorize/issue-code.ts'
import { findClient } from './oauth/clients/client.ts'
import { createKeySets } from './oauth/clients/key-sets.ts'
import type { AuthContext } from './oauth/context.ts'
import { switchAgents } from './oauth/grants/agents-switch.ts'
import { checkGrantedScope } from './oauth/grants/grant-scope.ts'
import { addBackend, requestBackendToken } from './testing/backend.ts'
import { readForm } from './testing/read-form.ts'
import { addPhone } from './testing/second-factor.ts'
import { SigningClient } from './testing/signing-client.ts'
import { readRedirect, TestAuthServer, unknownToken, VERIFIER } from './testing/test-auth-server.ts'
import type { TestBrowser } from './testing/test-browser.ts'
import { makeEncounter, patient } from './testing/test-fhir-server.ts'
import { openTestStore } from './testing/test-store.ts'
import { addWrongPasswords } from './testing/wrong-passwords.ts'
import { ADMINISTRATION } from './words/administration.ts'
import { explainReason } from './words/explanation.ts'
import type { PROPOSALS } from './words/proposals.ts'
import {
  findWords,
  OAUTH_REASONS,
  type OAuthReason,
  PAGE_REASONS,
  type PageReason,
  REASON_TABLES,
} from './words/reasons.ts'
import { type LOGOUT_TOKENS, PROVIDER_SIGN_IN } from './words/sign-in.ts'

type Outcome = LightMyRequestResponse | AuthRefusal
type Parts = Readonly<Record<string, string | undefined>>

/**
 * Those of logout tokens need a provider: see pages/sign-in/providers-logout.test.ts. Those of proposals need a FHIR server that
 * writes: see test/sign-proposals.test.ts.
 */
type HereReason =
  | Exclude<OAuthReason, keyof typeof LOGOUT_TOKENS>
  | Exclude<PageReason, keyof typeof PROPOSALS>

/** Makes each reason happen, over HTTP or by the function that refuses. The compiler finds a reason that is not in it. */
const WAYS: Readonly<Record<HereReason, (world: World) => Promise<Outcome | undefined>>> = {
  'parameter-unreadable': world => world.browser.get('/oauth2/authorize?client_id=a&client_id=b'),
  'some-parameter-unreadable': world => world.post('/oauth2/token', 'grant_type=a&grant_type=b'),
  'parameter-too-long': world => world.authorize({ nonce: 'x'.repeat(1_025) }),
  'request-object-unsupported': world => world.authorize({ request: 'x' }),
  'request-uri-unsupported': world => world.authorize({ request_uri: 'x' }),
  'registration-unsupported': world => world.authorize({ registration: 'x' }),
  'response-type-missing': world => world.authorize({ response_type: undefined }),
  'response-type-unsupported': world => world.authorize({ response_type: 'token' }),
  'response-mode-unsupported': world => world.authorize({ response_mode: 'fragment' }),
  'code-challenge-missing': world =>
    world.authorize({ code_challenge: undefined, code_challenge_method: undefined }),
  'code-challenge-method-unsupported': world => world.authorize({ code_challenge_method: 'plain' }),
  'code-challenge-malformed': world => world.authorize({ code_challenge: 'short' }),
  'aud-missing': world => world.authorize({ aud: undefined }),
  'aud-of-another-server': world => world.authorize({ aud: 'https://other.example/fhir' }),
  'resource-unknown': world => world.authorize({ resource: 'https://other.example/fhir' }),
  'agent-resource-missing': async world => {
    const client = {
      client_id: 'https://agent.example/known',
      redirect_uri: 'https://agent.example/callback',
    }
    await world.auth.addClient({
      client_id: client.client_id,
      redirect_uris: JSON.stringify([client.redirect_uri]),
      document_until: world.auth.time.now + 60_000,
    })
    return world.auth.authorize(world.browser, client)
  },
  'agents-off': async world => {
    await switchAgents(world.auth.store.db, 'off', world.auth.time.now)
    const refused = await world.authorize({ resource: 'http://localhost:8080/fhir/mcp' })
    await switchAgents(world.auth.store.db, 'on', world.auth.time.now)
    return refused
  },
  'client-host-not-allowed': async world => {
    const deployed = await world.openDeployed()
    const agents = { ...deployed.settings.agents, enabled: true }
    return describeClient(world, undefined, { ...deployed.settings, agents })
  },
  'client-document-unavailable': world => describeClient(world, undefined),
  'client-document-invalid': world => describeClient(world, { json: [], freshForMs: 0 }),
  'client-documents-too-many': async ({ auth: { store, settings } }) => {
    const fetchDocument = () => new Promise<undefined>(() => {})
    const clients = createDescribedClients({ store, settings, clock: () => 0, fetchDocument })
    for (let at = 0; at < LIMITS.keySetFetchesOfStrangers; at++)
      void clients.refresh(`https://agent.example/${at}`)
    // The others have looked into the database before this one.
    return clients.refresh('https://agent.example/last')
  },
  'client-id-missing': world => world.authorize({ client_id: undefined }),
  'app-not-registered': world => world.authorize({ client_id: 'nobody' }),
  'redirect-uri-missing': world => world.authorize({ redirect_uri: undefined }),
  'redirect-uri-not-registered': world => world.authorize({ redirect_uri: 'https://other.example/' }),
  'prompt-unknown': world => world.authorize({ prompt: 'x' }),
  'prompt-none-with-others': world => world.authorize({ prompt: 'none login' }),
  'max-age-malformed': world => world.authorize({ max_age: 'x' }),
  'claims-malformed': world => world.authorize({ claims: 'x' }),
  'id-token-hint-not-ours': world => world.authorize({ id_token_hint: 'a.b.c' }),
  'id-token-hint-of-another-user': async world => {
    const { id_token } = await world.getTokens()
    return world.auth.authorize(await world.auth.logIn('another'), { id_token_hint: id_token })
  },
  'id-token-hint-of-another-app': async world => {
    const { id_token = '' } = await world.getTokens()
    return world.browser.get(
      `/oauth2/logout?${new URLSearchParams({ id_token_hint: id_token, client_id: 'x' })}`,
    )
  },
  'post-logout-uri-not-registered': world =>
    world.browser.get('/oauth2/logout?post_logout_redirect_uri=https://other.example'),
  'scope-list-too-large': world => world.authorize({ scope: 'openid '.repeat(101).trim() }),
  'scope-combinations-too-many': async () =>
    checkGrantedScope(Array.from({ length: 101 }, (_, at) => `patient/Observation.rs?code=${at}`).join(' ')),
  'scope-combinations-too-large': async () =>
    checkGrantedScope(
      Array.from({ length: 90 }, (_, at) => `patient/Observation.rs?code=${at}${'x'.repeat(90)}`).join(' '),
    ),
  'scope-not-grantable': world => world.authorize({ scope: 'patient/Nothing.rs' }),
  'scope-not-grantable-in-launch': world => world.issueCode({ scope: 'patient/Patient.rs' }),
  'scope-without-patient': world => world.authorize({ scope: 'patient/Patient.rs', client_id: 'plain' }),
  'launch-without-scope': world => world.authorize({ launch: 'x', scope: 'openid' }),
  'launch-unknown': world => world.authorize({ launch: unknownToken }),
  'launch-of-another-app': async world =>
    world.authorize({ launch: await world.auth.launch(world.browser, { clientId: 'plain' }) }),
  'launch-of-another-user': async world => {
    const launch = await world.auth.launch(world.browser)
    return world.auth.authorize(await world.auth.logIn('another'), { launch })
  },
  'launch-expired': async world => {
    const launch = await world.auth.launch(world.browser)
    world.auth.time.now += 300_001
    return world.authorize({ launch })
  },
  'launch-used': async world => {
    const launch = await world.auth.launch(world.browser)
    await world.authorize({ launch })
    return world.authorize({ launch })
  },
  'app-no-longer-registered': world =>
    world.changeClientDuringConsent({ redirect_uris: '["https://changed.example/"]' }),
  'request-completed': world => world.issueCode({ pendingId: 'ended' }),
  'too-many-waiting': async world => {
    const request = JSON.stringify(world.auth.makeParameters())
    const rows = Array.from({ length: LIMITS.pendingPerNetwork }, (_, at) => ({
      id_hash: `waiting-${at}`,
      request,
      network_hash: 'here',
      created_at: world.auth.time.now,
      expires_at: world.auth.time.now + 600_000,
    }))
    const { db } = world.auth.store
    await world.auth.authorize(world.auth.openBrowser(), {})
    const { network_hash } = await db
      .selectFrom('authorization_request')
      .select('network_hash')
      .where('network_hash', 'is not', null)
      .executeTakeFirstOrThrow()
    for (let at = 0; at < rows.length; at += 100)
      await db
        .insertInto('authorization_request')
        .values(rows.slice(at, at + 100).map(row => ({ ...row, network_hash })))
        .execute()
    const refused = await world.auth.authorize(world.auth.openBrowser(), {})
    await db.deleteFrom('authorization_request').execute()
    return refused
  },
  'login-required': world => world.auth.authorize(world.auth.openBrowser(), { prompt: 'none' }),
  'patient-choice-required': world =>
    world.authorize({ prompt: 'none', scope: 'launch/patient patient/Patient.rs' }),
  'consent-required': world =>
    world.authorize({ ...CONSENTING, scope: 'openid', prompt: 'none', launch: undefined }),
  'sign-in-too-weak': world =>
    world.authorize({ claims: JSON.stringify({ id_token: { acr: { essential: true, value: 'x' } } }) }),
  'account-opens-no-records': async world => world.auth.authorize(await world.auth.logIn('vera'), {}),
  'consent-denied': async world => world.decide(await world.askConsent(), 'deny'),
  'nothing-approved': world => world.issueCode({ scope: 'user/Patient.rs', approvedScopes: new Set() }),
  'patient-not-chosen': async world => {
    const asked = await world.authorize({ scope: 'launch/patient patient/Patient.rs' })
    const { interaction = '' } = readRedirect(asked)
    return world.browser.post('/oauth2/pick', { interaction, cancel: '1' })
  },

  'client-not-named': world => world.token({ grant_type: 'authorization_code' }),
  'client-not-registered': world => world.token({ client_id: 'nobody', grant_type: 'x' }),
  'client-of-refresh-token-unknown': world =>
    world.token({ grant_type: 'refresh_token', refresh_token: unknownToken }),
  'client-unusable': world => world.token({ client_id: 'disabled', grant_type: 'x' }),
  'public-client-sent-secret': world => world.token({ client_id: 'plain', client_secret: 'x' }),
  'client-secret-wrong': world => world.token({ client_id: 'secretive', client_secret: 'x' }),
  'client-assertion-missing': world => world.token({ client_id: 'signer', grant_type: 'x' }),
  'client-assertion-type-unknown': world =>
    world.token({ client_assertion: 'x', client_assertion_type: 'x' }),
  'client-authentication-repeated': world => world.token({ client_secret: 'x', client_assertion: 'x' }),
  'basic-header-malformed': world => world.token({}, { authorization: 'Basic ?' }),
  'clients-differ': world => world.token({ client_id: 'b' }, { authorization: `Basic ${btoa('a:x')}` }),
  'public-client-not-authenticated': world =>
    world.post('/oauth2/introspect', { client_id: 'plain', token: 'x' }),
  'assertion-malformed': world => world.assert({ client_assertion: 'x' }),
  'assertion-parties-differ': world => world.assert(world.signer.makeProof({ sub: 'x' })),
  'assertion-of-another-client': world => world.assert({ ...world.signer.makeProof(), client_id: 'plain' }),
  'assertion-not-registered': world => world.assert(world.signer.makeProof({ iss: 'plain', sub: 'plain' })),
  'assertion-aud-wrong': world => world.assert(world.signer.makeProof({ aud: 'https://other.example' })),
  'assertion-exp-missing': world => world.assert(world.signer.makeProof({ exp: undefined })),
  'assertion-expired': world => world.assert(world.signer.makeProof({ exp: 1 })),
  'assertion-too-long-valid': world => world.assert(world.signer.makeProof({ exp: 9_999_999_999 })),
  'assertion-from-the-future': world => world.assert(world.signer.makeProof({ nbf: 9_999_999_999 })),
  'assertion-jti-malformed': world => world.assert(world.signer.makeProof({ jti: '' })),
  'assertion-used': async world => {
    const proof = world.signer.makeProof()
    await world.assert(proof)
    return world.assert(proof)
  },
  'assertion-alg-unsupported': world => world.assert(world.signer.makeProof({}, { alg: 'RS256' })),
  'assertion-kid-missing': world => world.assert(world.signer.makeProof({}, { kid: '' })),
  'assertion-typ-wrong': world => world.assert(world.signer.makeProof({}, { typ: 'at+jwt' })),
  'assertion-crit-unsupported': world => world.assert(world.signer.makeProof({}, { crit: [] })),
  'assertion-jku-not-registered': world =>
    world.assert(world.signer.makeProof({}, { jku: 'https://other.example' })),
  'assertion-key-unknown': world => world.assert(world.signer.makeProof({}, { kid: 'x' })),
  'assertion-key-ambiguous': world => world.assert(new SigningClient('twins', world.auth.time).makeProof()),
  'assertion-signature-wrong': world =>
    world.assert({
      client_assertion: world.signer.signAssertion(
        {},
        {},
        generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey,
      ),
    }),
  'assertion-keys-unavailable': world =>
    world.assert(new SigningClient('keyless', world.auth.time).makeProof()),
  'assertion-keys-too-many': async () => {
    const keySets = createKeySets({ fetchDocument: () => new Promise(() => {}), clock: () => 0 })
    const find = (at: number) => keySets.find({ jwksUrl: `https://${at}.example`, approved: false }, 'x')
    for (let at = 0; at < LIMITS.keySetFetchesOfStrangers; at++) void find(at)
    const found = await find(-1)
    return isFailure(found) ? found : undefined
  },

  'body-not-form': world =>
    world.auth.app.inject({ method: 'POST', url: '/oauth2/token', payload: { grant_type: 'x' } }),
  'body-not-json': async world =>
    world.post('/launch-contexts', { x: 'y' }, { authorization: `Bearer ${await world.getLaunchToken()}` }),
  'parameter-missing': world => world.token({ client_id: 'plain', grant_type: 'refresh_token' }),
  'token-redirect-uri-missing': world =>
    world.token({ client_id: 'plain', grant_type: 'authorization_code', code: 'x' }),
  'code-verifier-missing': world =>
    world.token({ client_id: 'plain', grant_type: 'authorization_code', code: 'x', redirect_uri: 'x' }),
  'grant-type-missing': world => world.token({ client_id: 'plain' }),
  'grant-type-unsupported': world => world.token({ client_id: 'plain', grant_type: 'x' }),
  'code-unknown': world => world.auth.exchange(unknownToken),
  'code-redirect-uri-differs': async world =>
    world.auth.exchange(await world.getCode(), { redirect_uri: 'https://other.example/' }),
  'code-verifier-wrong': async world =>
    world.auth.exchange(await world.getCode(), { code_verifier: `${VERIFIER}x` }),
  'code-expired': async world => {
    const code = await world.getCode()
    world.auth.time.now += 60_001
    return world.auth.exchange(code)
  },
  'code-used': async world => {
    const code = await world.getCode()
    await world.auth.exchange(code)
    return world.auth.exchange(code)
  },
  'code-grant-ended': async world => {
    const browser = await world.auth.logIn()
    const code = await world.auth.getCode(browser)
    await browser.post('/logout', {})
    return world.auth.exchange(code)
  },
  'refresh-token-unknown': world => world.auth.refresh(unknownToken),
  'refresh-token-used': async world => {
    const { refresh_token = '' } = await world.getTokens()
    const { refresh_token: next } = (await world.auth.refresh(refresh_token)).json()
    await world.auth.refresh(next)
    return world.auth.refresh(refresh_token)
  },
  'resource-not-granted': async world => {
    const { refresh_token = '' } = await world.getTokens()
    return world.auth.refresh(refresh_token, { resource: 'https://other.example' })
  },
  'scope-exceeds-grant': async world => {
    const { refresh_token = '' } = await world.getTokens()
    return world.auth.refresh(refresh_token, { scope: 'user/*.cruds' })
  },
  'program-scope-differs': world =>
    world.token({
      client_id: 'program',
      client_secret: 'top',
      grant_type: 'client_credentials',
      scope: 'system/*.rs',
    }),
  'client-credentials-not-allowed': world =>
    world.token({ client_id: 'plain', grant_type: 'client_credentials', scope: 'system/*.rs' }),
  'system-scope-missing': world =>
    world.token({ ...world.signer.makeProof(), grant_type: 'client_credentials' }),
  'fhir-server-unreachable': world => world.exchangeAs('relative', () => world.auth.fhir.fail('no-response')),
  'patient-access-lost': world =>
    world.exchangeAs('alba', async () => {
      await world.auth.store.db.updateTable('grant').set({ patient_id: 'ashlar' }).execute()
    }),
  simulated: async world => {
    const link = await world.browser.get('/lab/launch?patient=juniper&simulate=token:invalid_grant')
    const launch = new URL(link.headers.location ?? '').searchParams.get('launch') ?? ''
    return world.auth.exchange(readRedirect(await world.authorize({ launch })).code ?? '')
  },

  'metadata-malformed': world => world.register([]),
  'metadata-has-too-many-members': world =>
    world.register(Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`m${at}`, at]))),
  'metadata-text-malformed': world => world.register({ client_name: 7 }),
  'metadata-list-malformed': world => world.register({ contacts: 'x' }),
  'metadata-redirect-uris-malformed': world => world.register({ redirect_uris: 'x' }),
  'metadata-auth-method-unsupported': world => world.register({ token_endpoint_auth_method: 'x' }),
  'metadata-grant-type-unsupported': world => world.register({ grant_types: ['x'] }),
  'metadata-response-type-unsupported': world => world.register({ response_types: ['token'] }),
  'metadata-credentials-need-keys': world => world.register({ grant_types: ['client_credentials'] }),
  'metadata-property-invalid': world =>
    world.register({ redirect_uris: ['https://a.example'], client_uri: 'no URL' }),
  'metadata-redirect-uri-invalid': world => world.register({ redirect_uris: ['no URL'] }),
  'metadata-system-scopes-need-credentials': world =>
    world.register({
      redirect_uris: ['https://a.example/'],
      scope: 'system/*.rs',
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: JSON.parse(world.signer.jwks),
    }),
  'metadata-own-scopes': world =>
    world.register({
      grant_types: ['client_credentials'],
      token_endpoint_auth_method: 'private_key_jwt',
      scope: LAUNCH_SCOPE,
      jwks: JSON.parse(world.signer.jwks),
    }),
  'metadata-system-scopes-of-stranger': async world => {
    const deployed = await world.openDeployed()
    const keys = JSON.parse(world.signer.jwks)
    return deployed.app.inject({
      method: 'POST',
      url: '/oauth2/register',
      payload: {
        grant_types: ['client_credentials'],
        token_endpoint_auth_method: 'private_key_jwt',
        scope: 'system/*.rs',
        jwks: keys,
      },
    })
  },
  'metadata-too-long': world =>
    world.register({
      redirect_uris: Array.from({ length: 17 }, (_, at) => `https://a.example/${at}/`.padEnd(1_900, 'x')),
    }),
  'too-many-unapproved-clients': async world => {
    const { db } = world.auth.store
    const columns = {
      name: 'x',
      auth_method: 'none',
      redirect_uris: '[]',
      scope: 'openid',
      first_party: false,
      approved: false,
      created_at: 0,
    } as const
    for (let at = 0; at < LIMITS.unapprovedClients; at += 50)
      await db
        .insertInto('client')
        .values(Array.from({ length: 50 }, (_, one) => ({ ...columns, client_id: `many-${at + one}` })))
        .execute()
    const refused = await world.register({ redirect_uris: ['https://a.example/'] })
    await db.deleteFrom('client').where('name', '=', 'x').execute()
    return refused
  },

  'app-without-launch-url': world => world.launchByCommand({ clientId: 'signer' }),
  'launch-needs-patient': world => world.launchByCommand({ patientId: undefined }),
  'scope-needs-patient': world => world.tokenByCommand({ patientId: undefined, scope: 'patient/Patient.rs' }),
  'command-app-unknown': world => world.tokenByCommand({ clientId: 'nobody' }),
  'command-user-unknown': world => world.tokenByCommand({ username: 'nobody' }),
  'user-is-relative': world => world.tokenByCommand({ username: 'relative' }),
  'user-sees-another-patient': world => world.tokenByCommand({ username: 'alba', patientId: 'ashlar' }),
  'app-is-backend-service': world => world.tokenByCommand({ clientId: 'signer' }),
  'command-scope-not-grantable': world => world.tokenByCommand({ scope: 'user/Nothing.rs' }),

  'sign-in-ended': world => world.browser.get('/oauth2/resume?interaction=x'),
  'password-wrong': world => world.signIn('another', 'wrong'),
  'password-too-many': world => world.repeat('password-too-many', () => world.signIn('many', 'wrong')),
  'account-locked': async world => {
    await addWrongPasswords(world.auth.store.db, (await world.auth.findUser('locked')).id)
    return world.signIn('locked', 'sallyport')
  },
  'factor-wrong': async world => (await world.startFactor('factor-1')).post(FACTOR, { code: '000000' }),
  'factor-wrong-again': async world => {
    const browser = await world.startFactor('factor-2')
    return world.repeat('factor-wrong-again', () => browser.post(FACTOR, { code: 'AAAA-BBBB-CCCC' }))
  },
  'factor-too-many': async world => {
    const browser = await world.startFactor('factor-3')
    return world.repeat('factor-too-many', () => browser.post(FACTOR, { code: '000000' }))
  },
  'factor-too-many-today': async world => {
    await world.startFactor('factor-4')
    return world.repeat('factor-too-many-today', async () => {
      world.auth.time.now += world.auth.settings.loginFailureWindowSeconds * 1000
      const browser = world.auth.openBrowser()
      await browser.login('factor-4')
      return browser.post(FACTOR, { code: '000000' })
    })
  },
  'passkey-wrong': world => world.post('/login/passkey', { credential: '{}' }),
  'activation-link-ended': world => world.post('/login/activate', { link: unknownToken }),
  'activation-links-too-many': world =>
    world.repeat('activation-links-too-many', () => world.post('/login/activate', { link: unknownToken })),
  'current-password-wrong': world =>
    world.browser.post('/account/password', { current: 'wrong', next: LONG, again: LONG }),
  'introspection-token-refused': world =>
    world.post('/oauth2/introspect', { token: 'x' }, { authorization: 'Bearer x' }),
  'launch-patient-missing': world => world.browser.post('/portal/launch', {}),
  'launch-form-repeated': world => world.browser.post('/portal/launch', 'patientId=a&patientId=b'),
  'launch-option-invalid': world => world.launchForm({ intent: 'x'.repeat(10_000) }),
  'launch-encounter-missing': world => world.launchForm({ step: 'encounter' }),
  'launch-app-unknown': world => world.launchForm({ clientId: 'nobody' }),
  'launch-patient-unknown': world => world.launchForm({ patientId: 'nobody' }),
  'launch-encounter-unknown': world => world.launchForm({ encounterId: 'enc-9' }),
  'launch-user-unknown': world =>
    world.requestLaunch({ client_id: 'plain', username: 'nobody', patient: 'juniper' }),
  'launch-body-invalid': world => world.requestLaunch({ unknown: 'x' }),
  'records-unavailable': async world => {
    world.auth.fhir.fail('no-response')
    const failed = await world.requestLaunch({
      client_id: 'plain',
      username: 'clinician',
      patient: 'juniper',
    })
    world.auth.fhir.fail(undefined)
    return failed
  },
  'link-parameter-invalid': world => world.browser.get('/lab/launch?x=y'),
  'link-apps-too-many': async world => {
    for (let at = 0; at <= MAX_CLIENTS; at++) {
      const query = new URLSearchParams({
        client: `lab-app-${at}`,
        launch_url: `http://localhost:${3000 + at}/`,
        patient: 'juniper',
      })
      const answer = await world.browser.get(`/lab/launch?${query}`)
      if (answer.statusCode === 400) return answer
    }
    return undefined
  },
  'link-of-another-site': world =>
    world.browser.get('/lab/launch?patient=juniper', { 'sec-fetch-site': 'cross-site' }),
  'lab-over-plain-http': async world => (await world.openDeployed()).openBrowser().get('/lab/launch'),
  'lab-needs-administrator': async world => (await world.openDeployed()).app.inject(OVER_TLS),
  'lab-needs-recent-sign-in': async world => {
    const deployed = await world.openDeployed()
    await deployed.addUser('root', { admin: true })
    const browser = await deployed.logIn('root')
    deployed.time.now += 3_600_000
    return deployed.app.inject({ ...OVER_TLS, cookies: Object.fromEntries(browser.cookies) })
  },
}

const OVER_TLS = {
  method: 'GET',
  url: '/lab/launch?patient=juniper',
  headers: { 'x-forwarded-proto': 'https', 'sec-fetch-site': 'same-origin' },
} as const

const FACTOR = '/login/second-factor'
const LONG = 'a-new-password-that-is-long-enough'
const CONSENTING = { client_id: 'asking', redirect_uri: 'https://asking.example/callback' }
const LAUNCH_SCOPE = '__launch-contexts.c'

/** A server with apps and users, and what the ways need of it. */
/** Asks for a client that this document describes. */
function describeClient(
  { auth }: World,
  document: FetchedDocument | undefined,
  settings = auth.settings,
): Promise<AuthRefusal | undefined> {
  const clients = createDescribedClients({
    store: auth.store,
    settings,
    clock: () => auth.time.now,
    fetchDocument: async () => document,
  })
  return clients.refresh('https://agent.example/client')
}

class World {
  readonly auth: TestAuthServer
  readonly browser: TestBrowser
  readonly signer: SigningClient
  readonly openDeployed: () => Promise<TestAuthServer>

  constructor(auth: TestAuthServer, browser: TestBrowser, openDeployed: () => Promise<TestAuthServer>) {
    this.auth = auth
    this.browser = browser
    this.signer = new SigningClient('signer', auth.time)
    this.openDeployed = openDeployed
  }

  authorize(different: Parts): Promise<LightMyRequestResponse> {
    const { client_id } = different
    const own = client_id === undefined ? {} : { redirect_uri: `https://${client_id}.example/callback` }
    return this.auth.authorize(this.browser, { ...own, ...different })
  }

  getCode(): Promise<string> {
    return this.auth.getCode(this.browser)
  }

  async getTokens(): Promise<Readonly<Record<string, string>>> {
    return (await this.auth.exchange(await this.getCode())).json()
  }

  token(form: Readonly<Record<string, string>>, headers = {}): Promise<LightMyRequestResponse> {
    return this.auth.requestToken(form, headers)
  }

  assert(proof: Readonly<Record<string, string>>): Promise<LightMyRequestResponse> {
    const { client_assertion_type = '' } = this.signer.makeProof()
    const form = { grant_type: 'client_credentials', scope: 'system/Patient.rs', client_assertion_type }
    return this.token({ ...form, ...proof })
  }

  post(
    path: string,
    form: Readonly<Record<string, string>> | string,
    headers = {},
  ): Promise<LightMyRequestResponse> {
    return this.auth.openBrowser().post(path, form, headers)
  }

  register(payload: object): Promise<LightMyRequestResponse> {
    return this.auth.app.inject({ method: 'POST', url: '/oauth2/register', payload })
  }

  launchForm(form: Readonly<Record<string, string>>): Promise<LightMyRequestResponse> {
    return this.browser.post('/portal/launch', { patientId: 'juniper', ...form })
  }

  getLaunchToken(): Promise<string> {
    return requestBackendToken(this.auth, 'ehr', LAUNCH_SCOPE)
  }

  async requestLaunch(payload: object): Promise<LightMyRequestResponse> {
    const headers = { authorization: `Bearer ${await this.getLaunchToken()}` }
    return this.auth.app.inject({ method: 'POST', url: '/launch-contexts', payload, headers })
  }

  async askConsent(scope = 'launch openid patient/Patient.rs'): Promise<URLSearchParams> {
    const launch = await this.auth.launch(this.browser, { clientId: 'asking' })
    const asked = await this.authorize({ ...CONSENTING, scope, launch })
    return readForm((await this.browser.get(asked.headers.location ?? '')).body)
  }

  decide(form: URLSearchParams, decision: 'allow' | 'deny'): Promise<LightMyRequestResponse> {
    return this.browser.post('/oauth2/consent', `${form}&decision=${decision}`)
  }

  /** Changes the registration of an app while its user reads the consent page. */
  async changeClientDuringConsent(change: {
    readonly redirect_uris: string
  }): Promise<LightMyRequestResponse> {
    const { db } = this.auth.store
    const find = db.selectFrom('client').select('redirect_uris').where('client_id', '=', 'asking')
    const before = await find.executeTakeFirstOrThrow()
    const form = await this.askConsent()
    const update = db.updateTable('client').where('client_id', '=', 'asking')
    await update.set(change).execute()
    const refused = await this.decide(form, 'allow')
    await update.set(before).execute()
    return refused
  }

  /** Issues a code in a transaction that finds what changed since the request was checked. */
  async issueCode({ scope = 'openid', ...different }: Partial<Approval> & { readonly scope?: string }) {
    const { store, settings, rules, time } = this.auth
    const context = { store, settings, rules, clock: () => time.now } as AuthContext
    const request = { scope, prompts: [] } as unknown as Approval['request']
    const approval = {
      client: await findClient(store.db, context, 'asking'),
      pendingId: undefined,
      approvedScopes: undefined,
      ...different,
    } as Approval
    const issued = await issueCode(context, { ...approval, request }, async () => {})
    return isFailure(issued) && issued.reason !== 'approval-outdated' ? issued : undefined
  }

  /** Exchanges the code of a patient or a relative, after something has happened. */
  async exchangeAs(username: string, meanwhile: () => void | Promise<void>): Promise<LightMyRequestResponse> {
    const browser = await this.auth.logIn(username)
    const asked = await this.auth.authorize(browser, { scope: 'launch/patient patient/Patient.rs' })
    const { code = '' } = readRedirect(asked)
    await meanwhile()
    const refused = await this.auth.exchange(code)
    this.auth.fhir.fail(undefined)
    return refused
  }

  async signIn(username: string, password: string): Promise<LightMyRequestResponse> {
    return this.auth.openBrowser().login(username, password)
  }

  /** A browser whose user has a second factor, and has entered the password. */
  async startFactor(username: string): Promise<TestBrowser> {
    await this.auth.addUser(username)
    await addPhone(this.auth, await this.auth.logIn(username))
    const browser = this.auth.openBrowser()
    await browser.login(username)
    return browser
  }

  /** Repeats something until it is refused for this reason. */
  async repeat(reason: PageReason, act: () => Promise<LightMyRequestResponse>): Promise<Outcome | undefined> {
    for (let at = 0; at < 100; at++) {
      const response = await act()
      if ((await findReason([this.auth], response))?.reason === reason) return response
    }
    return undefined
  }

  get #command() {
    const { settings, store, rules, time } = this.auth
    const audit = createAuditor({ store })
    const sealer = createSealer('test secret')
    return { settings, store, rules, audit, sealer, clock: () => time.now, operator: 'test' }
  }

  async tokenByCommand(different: Parts): Promise<AuthRefusal | undefined> {
    const issued = await issueTokenByCommand(this.#command, { ...COMMAND, scope: undefined, ...different })
    return isFailure(issued) ? issued : undefined
  }

  async launchByCommand(different: Parts): Promise<AuthRefusal | undefined> {
    const request = { ...COMMAND, ...different, simulate: undefined }
    const issued = await issueLaunchByCommand(this.#command, request)
    return isFailure(issued) ? issued : undefined
  }
}

const RESOURCES = [
  patient('juniper', 'Juniper', 'Alba'),
  patient('ashlar', 'Ashlar', 'Tobias'),
  makeEncounter('enc-9', 'ashlar', 'in-progress'),
  { resourceType: 'RelatedPerson', id: 'r-1', active: true, patient: { reference: 'Patient/juniper' } },
]

const COMMAND = { clientId: 'plain', username: 'clinician', patientId: 'juniper', encounterId: undefined }

describe('the reasons of the auth server', () => {
  const open = openTestStore()
  let world: World
  let audited: readonly TestAuthServer[]
  before(async () => {
    const store = await open()
    const auth = await TestAuthServer.open(store, {
      audit: createAuditor({ store }),
      settings: { lab: true },
      resources: RESOURCES,
    })
    for (const username of ['another', 'many', 'locked']) await auth.addUser(username)
    await auth.addUser('vera', { fhir_user_id: '' })
    await auth.addUser('alba', { fhir_user_id: 'Patient/juniper' })
    await auth.addUser('relative', { fhir_user_id: 'RelatedPerson/r-1' })
    const { id: clinician_id } = await auth.findUser('relative')
    await auth.store.db
      .insertInto('account_related_person')
      .values({ clinician_id, related_person_id: 'r-1' })
      .execute()
    await auth.addClient({ client_id: 'plain' })
    await auth.addClient({ client_id: 'disabled', disabled: true })
    await auth.addClient({
      client_id: 'asking',
      first_party: false,
      scope: 'launch openid patient/*.rs user/*.rs',
    })
    const secret = { auth_method: 'client_secret', secret_hash: sha256('top') } as const
    await auth.addClient({ client_id: 'secretive', ...secret })
    await auth.addClient({ client_id: 'program', ...secret, scope: 'sallyport/admin' })
    await addBackend(auth, 'signer', 'system/*.rs')
    await addBackend(auth, 'ehr', LAUNCH_SCOPE)
    const { jwk } = new SigningClient('twins', auth.time)
    const signed = { auth_method: 'private_key_jwt', scope: 'system/*.rs' } as const
    const twins = JSON.stringify({ keys: [jwk, { ...jwk, use: undefined }] })
    await auth.addClient({ client_id: 'twins', ...signed, jwks: twins })
    await auth.addClient({ client_id: 'keyless', ...signed })
    const other = await open()
    const deployed = await TestAuthServer.open(other, {
      audit: createAuditor({ store: other }),
      settings: { lab: true, onLoopback: false, openRegistration: true, trustProxy: 'loopback' },
    })
    world = new World(auth, await auth.logIn(), async () => deployed)
    audited = [auth, deployed]
  })

  for (const [reason, happen] of Object.entries(WAYS))
    it(`${reason} happens, and is explained (ACTIVITY-4)`, async () => {
      // Repeated anonymous requests are only counted within a minute.
      for (const { time } of audited) time.now += 60_000
      await world.browser.login()
      const outcome = await happen(world)
      assert(outcome, 'nothing was refused')
      const found = isFailure(outcome)
        ? outcome
        : ((await findReason(audited, outcome)) ?? findBySentence(outcome))
      assert.equal(found.reason, reason)
      const explained = explainReason(found)
      assert(explained)
      assert.doesNotMatch(`${explained.cause} ${explained.action}`, /[{}…]|undefined/)
    })
})

/** The reason of a response, by its record. */
async function findReason(servers: readonly TestAuthServer[], { headers }: LightMyRequestResponse) {
  for (const { store } of servers) {
    const rows = await (await store.trail.read())
      .selectFrom('audit_event')
      .select('details')
      .where('request_id', '=', String(headers['x-request-id']))
      .execute()
    const named = rows.map(({ details }) => readDetails(details)).find(details => details.reason)
    if (named) return named
  }
  return undefined
}

/** Refused registrations are not recorded: their reason is found by the response. */
function findBySentence(response: LightMyRequestResponse): {
  readonly reason: string
  readonly facts: StoredFacts
} {
  const { error, error_description: sentence } = response.json()
  for (const [reason, words] of Object.entries(OAUTH_REASONS)) {
    if (words.error !== error || words.sentence.startsWith('{')) continue
    const pattern = words.sentence.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{(\w+)\}/g, '(?<$1>.+)')
    const found = new RegExp(`^${pattern}$`).exec(sentence)
    if (found) return { reason, facts: { ...found.groups } }
  }
  const isUrl = error === 'invalid_redirect_uri'
  return {
    reason: isUrl ? 'metadata-redirect-uri-invalid' : 'metadata-property-invalid',
    facts: { faults: sentence },
  }
}

describe('docs/errors.md', () => {
  it('has a table for every reason, and no reason has two', () => {
    const listed = Object.values(REASON_TABLES).flatMap(table => Object.keys(table))
    const known = [
      OAUTH_REASONS,
      PAGE_REASONS,
      PROVIDER_SIGN_IN,
      ADMINISTRATION,
      FHIR_REASONS,
      API_REASONS,
      LAUNCH_REASONS,
    ].flatMap(table => Object.keys(table))
    assert.deepEqual(listed.toSorted(), known.toSorted())
  })
})

describe('findWords', () => {
  it('finds nothing for a reason of a later release, or none', () => {
    for (const reason of ['of-a-later-release', 'toString', undefined])
      assert.equal(findWords(reason), undefined)
    assert.equal(explainReason({ reason: 'of-a-later-release' }), undefined)
  })
})
