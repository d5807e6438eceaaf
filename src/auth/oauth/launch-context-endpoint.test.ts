import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../test/support/databases.ts'
import { addBackend, requestBackendToken } from '../testing/backend.ts'
import { readRedirect, TestAuthServer } from '../testing/test-auth-server.ts'
import { openTestStore } from '../testing/test-store.ts'

const SCOPE = '__launch-contexts.c'
const ORDER = { client_id: 'sallyport-app', username: 'clinician', patient: 'juniper' }

async function order(auth: TestAuthServer, body: unknown, token?: string) {
  const bearer = token ?? (await requestBackendToken(auth, 'ehr', SCOPE))
  return auth.app.inject({
    method: 'POST',
    url: '/launch-contexts',
    headers: {
      'content-type': 'application/json',
      ...(bearer === '' ? {} : { authorization: `Bearer ${bearer}` }),
    },
    payload: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

eachDatabaseIfThorough((_name, open) => {
  describe('POST /launch-contexts', () => {
    let auth: TestAuthServer
    before(async () => {
      auth = await TestAuthServer.open(await open())
      await addBackend(auth, 'ehr', `${SCOPE} system/*.rs`)
    })

    it('creates a launch that the named user completes, with its whole context (LAUNCH-10)', async () => {
      const fhirContext = [
        { reference: 'ImagingStudy/123' },
        { canonical: 'https://forms.example/q|1', type: 'Questionnaire', role: 'https://forms.example/role' },
        { identifier: { system: 'urn:x', value: '1' }, type: 'ServiceRequest' },
      ]
      const more = {
        encounter: 'enc-2',
        need_patient_banner: false,
        intent: 'reconcile',
        tenant: 'north',
        fhirContext,
      }
      const response = await order(auth, { ...ORDER, ...more })
      assert.equal(response.statusCode, 201)
      const { launch, launch_url, expires_in, ...rest } = response.json()
      assert.deepEqual([expires_in, rest], [300, {}])
      assert.match(launch, /^[\w-]{43}$/)
      const iss = encodeURIComponent('http://localhost:8080/fhir')
      assert.equal(launch_url, `http://localhost:8081/launch?iss=${iss}&launch=${launch}`)
      const browser = await auth.logIn()
      const { code = '' } = readRedirect(await auth.authorize(browser, { launch }))
      const tokens = (await auth.exchange(code)).json()
      const { patient, encounter, need_patient_banner, intent, tenant } = tokens
      assert.deepEqual(
        { patient, encounter, need_patient_banner, intent, tenant, fhirContext: tokens.fhirContext },
        { patient: 'juniper', ...more },
      )
      // A refresh returns the launch context again.
      const again = (await auth.refresh(tokens.refresh_token)).json()
      assert.deepEqual([again.intent, again.tenant, again.fhirContext], ['reconcile', 'north', fhirContext])
    })

    it('creates a launch for that user only (LAUNCH-10)', async () => {
      await auth.addUser('colleague')
      const { launch } = (await order(auth, ORDER)).json()
      const other = readRedirect(await auth.authorize(await auth.logIn('colleague'), { launch }))
      assert.equal(other.error, 'invalid_request')
    })
  })
})

describe('POST /launch-contexts', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  before(async () => {
    auth = await TestAuthServer.open(await open())
    await addBackend(auth, 'ehr', `${SCOPE} system/*.rs`)
    await auth.addClient({ client_id: 'silent', launch_url: null })
    await auth.addUser('gone')
    await auth.store.db
      .updateTable('clinician')
      .set({ disabled: true })
      .where('username', '=', 'gone')
      .execute()
  })

  it('requires a token of a backend service with its scope (LAUNCH-10)', async () => {
    const browser = await auth.logIn()
    const user = (await auth.exchange(await auth.getCode(browser))).json().access_token
    const reader = await requestBackendToken(auth, 'ehr', 'system/*.rs')
    for (const [token, status, error] of [
      ['', 401, undefined],
      ['nonsense', 401, 'invalid_token'],
      [reader, 403, 'insufficient_scope'],
      [user, 403, 'insufficient_scope'],
    ] as const) {
      const response = await order(auth, ORDER, token)
      assert.equal(response.statusCode, status)
      const challenge = String(response.headers['www-authenticate'])
      assert.match(challenge, /^Bearer/)
      if (error) assert.ok(challenge.includes(`error="${error}"`), challenge)
      assert.equal(response.headers['cache-control'], 'no-store')
    }
  })

  it('is refused when the token has ended', async () => {
    const token = await requestBackendToken(auth, 'ehr', SCOPE)
    auth.time.now += 301_000
    assert.equal((await order(auth, ORDER, token)).statusCode, 401)
  })

  const bad: readonly (readonly [string, unknown, number])[] = [
    ['no JSON', '{', 400],
    ['a text', '"x"', 400],
    ['an array', [ORDER], 400],
    ['no client', { ...ORDER, client_id: undefined }, 400],
    ['no username', { ...ORDER, username: undefined }, 400],
    ['no patient', { ...ORDER, patient: undefined }, 400],
    ['an unknown client', { ...ORDER, client_id: 'nobody' }, 400],
    ['a client without a launch address', { ...ORDER, client_id: 'silent' }, 400],
    ['an unknown username', { ...ORDER, username: 'nobody' }, 400],
    ['a user who is disabled', { ...ORDER, username: 'gone' }, 400],
    ['an unknown patient', { ...ORDER, patient: 'nobody' }, 404],
    ['a patient that is no id', { ...ORDER, patient: '../Patient/juniper' }, 404],
    ['an encounter of someone else', { ...ORDER, encounter: 'enc-9' }, 404],
    ['a banner that is a text', { ...ORDER, need_patient_banner: 'true' }, 400],
    ['an intent that is a number', { ...ORDER, intent: 7 }, 400],
    ['a tenant that is too long', { ...ORDER, tenant: 'x'.repeat(201) }, 400],
    ['an unknown member', { ...ORDER, patientId: 'juniper' }, 400],
    ['fhirContext of strings', { ...ORDER, fhirContext: ['ImagingStudy/1'] }, 400],
    ['an empty item', { ...ORDER, fhirContext: [{}] }, 400],
    [
      'an absolute reference',
      { ...ORDER, fhirContext: [{ reference: 'http://x.example/ImagingStudy/1' }] },
      400,
    ],
    ['the patient in fhirContext', { ...ORDER, fhirContext: [{ reference: 'Patient/juniper' }] }, 400],
    ['an empty role', { ...ORDER, fhirContext: [{ reference: 'ImagingStudy/1', role: '' }] }, 400],
    ['a relative role', { ...ORDER, fhirContext: [{ reference: 'ImagingStudy/1', role: 'mine' }] }, 400],
    ['an unknown type', { ...ORDER, fhirContext: [{ reference: 'Nonsense/1' }] }, 400],
    [
      'a patient by identifier',
      { ...ORDER, fhirContext: [{ type: 'Patient', identifier: { value: '1' } }] },
      400,
    ],
    [
      'an encounter by address',
      { ...ORDER, fhirContext: [{ type: 'Encounter', canonical: 'https://x.example/e' }] },
      400,
    ],
    [
      'a reference of another type',
      { ...ORDER, fhirContext: [{ type: 'Observation', reference: 'ImagingStudy/1' }] },
      400,
    ],
    [
      'a fhirContext that is too long',
      { ...ORDER, fhirContext: [{ identifier: { value: 'x'.repeat(20_000) } }] },
      400,
    ],
    ['an identifier that is a text', { ...ORDER, fhirContext: [{ identifier: 'x' }] }, 400],
  ]
  it('names every unknown member', async () => {
    const response = await order(auth, { ...ORDER, patientId: 'juniper', user: 'ada' })
    assert.match(response.body, /There is no member .*patientId.*There is no member .*user/)
  })

  it('names every wrong member', async () => {
    const body = { client_id: 1, patient: 'juniper', tenant: [], user: 'ada', fhirContext: {} }
    const { error_description } = (await order(auth, body)).json()
    assert.equal(
      error_description,
      'There is no member "user". client_id is missing or not a string. username is missing or not a string. tenant is not a string of at most 200 characters. fhirContext must be an array of at most 50 objects.',
    )
  })

  for (const [what, body, status] of bad) {
    it(`refuses ${what}`, async () => {
      const response = await order(auth, body)
      assert.equal(response.statusCode, status)
      assert.equal(typeof response.json().error, 'string')
      assert.doesNotMatch(response.body, /launch_url/)
    })
  }

  it('accepts JSON but no form', async () => {
    const response = await auth.openBrowser().post('/launch-contexts', ORDER, {
      authorization: `Bearer ${await requestBackendToken(auth, 'ehr', SCOPE)}`,
    })
    assert.equal(response.statusCode, 400)
    assert.equal(response.json().error, 'invalid_request')
  })

  it('accepts another patient in fhirContext with its own role', async () => {
    const fhirContext = [{ reference: 'Patient/ashlar', role: 'https://x.example/donor' }]
    assert.equal((await order(auth, { ...ORDER, fhirContext })).statusCode, 201)
  })

  it('reports an unreachable FHIR server', async () => {
    auth.fhir.fail('no-response')
    const response = await order(auth, ORDER)
    auth.fhir.fail(undefined)
    assert.equal(response.statusCode, 503)
    assert.equal(response.headers['retry-after'], '2')
  })
})
