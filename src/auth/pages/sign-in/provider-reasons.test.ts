import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { LightMyRequestResponse } from 'fastify'
import { change, Hospital } from '../../../../test/support/hospital.ts'
import { createAuditor } from '../../../audit/index.ts'
import type { OidcProvider } from '../../../config/index.ts'
import type { Resource } from '../../../fhir/index.ts'
import { LIMITS } from '../../base/limits.ts'
import type { TestAuthServer } from '../../testing/test-auth-server.ts'
import {
  makeProvider,
  openSignInServer,
  PRACTITIONERS,
  signIn,
  startSignIn,
} from '../../testing/test-sign-in.ts'
import { openTestStore } from '../../testing/test-store.ts'
import type { SignInReason } from '../../users/providers/refusal.ts'
import { explainReason } from '../../words/explanation.ts'

const ADA = {
  preferred_username: 'ada',
  name: 'Dr. Ada Byron',
  fhirUser: 'Practitioner/byron',
  employee_number: 'e-byron',
  groups: ['clinicians'],
}

const PATIENTS: readonly Resource[] = ['p1', 'p2'].map(id => ({
  resourceType: 'Patient',
  id,
  identifier: [{ system: 'urn:x', value: 'n-2' }],
}))

const SEARCH = { kind: 'search', search: 'Practitioner?identifier=urn:x|{employee_number}' } as const
const SEARCH_PATIENT = { kind: 'search', search: 'Patient?identifier=urn:x|{employee_number}' } as const

interface World {
  readonly hospital: Hospital
  readonly open: (changes?: Partial<OidcProvider>) => Promise<TestAuthServer>
}

type Way = (world: World) => Promise<LightMyRequestResponse>

/** A sign-in with a provider that has these settings, as a user with these claims. */
const sign =
  (changes: Partial<OidcProvider>, claims: object = {}): Way =>
  async ({ hospital, open }) => {
    hospital.users = { 'user-1': { ...ADA, ...claims } }
    return signIn((await open(changes)).openBrowser(), hospital, 'user-1')
  }

/** The compiler finds a reason that is not here. */
const WAYS: Readonly<Record<SignInReason, Way>> = {
  expired: async ({ open }) => (await open()).openBrowser().get('/login/callback?state=x'),
  unreachable: async ({ hospital, open }) => {
    const auth = await open()
    hospital.outage = true
    return auth.openBrowser().get('/login/providers/hospital')
  },
  busy: async ({ open }) => {
    const auth = await open()
    await startSignIn(auth.openBrowser())
    const { db } = auth.store
    const row = await db.selectFrom('pending_sign_in').selectAll().executeTakeFirstOrThrow()
    for (let from = 0; from < LIMITS.pendingPerNetwork; from += 100) {
      const rows = Array.from({ length: 100 }, (_, at) => ({ ...row, state_hash: `${from + at}` }))
      await db.insertInto('pending_sign_in').values(rows).execute()
    }
    return auth.openBrowser().get('/login/providers/hospital')
  },
  denied: async ({ hospital, open }) => signIn((await open()).openBrowser(), hospital, ''),
  'bad-response': async ({ hospital, open }) => {
    hospital.tamper = change({ nonce: 'x' })
    return signIn((await open()).openBrowser(), hospital, 'user-1')
  },
  'bad-callback': async ({ hospital, open }) => {
    const browser = (await open()).openBrowser()
    const callback = await hospital.authorize(await startSignIn(browser), 'user-1')
    return browser.get(callback.replace(/([?&])iss=[^&]*/, '$1iss=https://other.example'))
  },
  'weak-authentication': async ({ hospital, open }) => {
    hospital.tamper = change({ acr: 'urn:other' })
    return signIn((await open({ acrValues: ['urn:pwd'] })).openBrowser(), hospital, 'user-1')
  },
  'not-allowed': sign({ allow: { claim: 'groups', values: ['admins'] } }),
  'too-many-groups': async ({ hospital, open }) => {
    hospital.tamper = change({ groups: undefined, _claim_names: { groups: 'src1' } })
    hospital.users = { 'user-1': { ...ADA, groups: undefined } }
    const auth = await open({ allow: { claim: 'groups', values: ['clinicians'] } })
    return signIn(auth.openBrowser(), hospital, 'user-1')
  },
  'unknown-subject': sign({ provision: false }),
  disabled: async ({ hospital, open }) => {
    const auth = await open()
    await signIn(auth.openBrowser(), hospital, 'user-1')
    await auth.store.db
      .updateTable('clinician')
      .set({ disabled: true })
      .where('username', '=', 'ada')
      .execute()
    return signIn(auth.openBrowser(), hospital, 'user-1')
  },
  'username-taken': sign({}, { preferred_username: 'clinician' }),
  'bad-claims': sign({}, { fhirUser: 'nothing' }),
  'no-practitioner': sign({}, { fhirUser: 'Practitioner/nobody' }),
  'several-practitioners': sign({ fhirUser: SEARCH }, { employee_number: 'e-two' }),
  'no-patient': sign({ users: 'patients', fhirUser: SEARCH_PATIENT }, { employee_number: 'n-9' }),
  'several-patients': sign({ users: 'patients', fhirUser: SEARCH_PATIENT }, { employee_number: 'n-2' }),
  'other-users': async ({ hospital, open }) => {
    const auth = await open()
    await signIn(auth.openBrowser(), hospital, 'user-1')
    const ada = auth.store.db.updateTable('clinician').where('username', '=', 'ada')
    await ada.set({ fhir_user_id: 'Patient/p1' }).execute()
    return signIn(auth.openBrowser(), hospital, 'user-1')
  },
  'fhir-unavailable': async ({ hospital, open }) => {
    const auth = await open()
    auth.fhir.fail('no-response')
    return signIn(auth.openBrowser(), hospital, 'user-1')
  },
}

describe('the reasons of a sign-in with a provider', () => {
  const openStore = openTestStore()
  let hospital: Hospital
  before(async () => {
    hospital = await Hospital.start({ users: { 'user-1': ADA } })
  })
  after(() => hospital.close())
  beforeEach(() => {
    hospital.users = { 'user-1': ADA }
    hospital.tamper = undefined
    hospital.outage = false
  })

  for (const [reason, happen] of Object.entries(WAYS))
    it(`${reason} happens, and is explained (ACTIVITY-4)`, async () => {
      const store = await openStore()
      const twins = ['t1', 't2'].map(id => ({
        resourceType: 'Practitioner',
        id,
        identifier: [{ system: 'urn:x', value: 'e-two' }],
      }))
      const resources = [...PRACTITIONERS, ...twins, ...PATIENTS]
      const open = (changes?: Partial<OidcProvider>) =>
        openSignInServer(store, [makeProvider(hospital, changes)], {
          resources,
          audit: createAuditor({ store }),
        })
      const response = await happen({ hospital, open })
      const rows = await (await store.trail.read())
        .selectFrom('audit_event')
        .select('details')
        .where('request_id', '=', String(response.headers['x-request-id']))
        .execute()
      const found = rows.map(({ details }) => JSON.parse(details ?? '{}')).find(details => details.reason)
      assert.equal(found?.reason, reason)
      const explained = explainReason(found)
      assert(explained)
      assert.doesNotMatch(`${explained.cause} ${explained.action}`, /[{}…]|undefined/)
    })
})
