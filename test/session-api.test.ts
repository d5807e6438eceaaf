/** The session API behind the real auth server and the real FHIR server, over HTTP. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { HttpUser } from './support/http-user.ts'
import { type Stack, startStack } from './support/stack.ts'

/** The first patient of the sample data who has all that the tests ask for. */
const PATIENT = 'patient-1'

/** Runs on its own time: the same for all three servers. */
function movable(): { readonly clock: () => number; advance(seconds: number): void } {
  let ahead = 0
  return {
    clock: () => Date.now() + ahead,
    advance: seconds => {
      ahead += seconds * 1000
    },
  }
}

interface Bundle {
  readonly total: number
  readonly entry: readonly {
    readonly resource: Record<string, unknown> & { readonly recordedDate?: string }
  }[]
}

describe('the session API on the real servers', () => {
  const time = movable()
  let stack: Stack
  let user: HttpUser
  before(async () => {
    stack = await startStack({ clock: time.clock })
    user = new HttpUser(stack)
    await user.signIn()
    await user.launch(PATIENT)
  })
  after(() => stack.close())

  const json = async <T>(path: string): Promise<T> => {
    const response = await user.api(path)
    assert.equal(response.status, 200, path)
    return response.json() as Promise<T>
  }

  it('describes clinician, patient and launch (CLIENT-1)', async () => {
    const session = await json<Record<string, unknown>>('session')
    assert.equal(session.patientId, PATIENT)
    assert.equal(session.fhirBaseUrl, stack.settings.fhirBaseUrl)
    assert.equal('encounterId' in session, false)
    const me = await json<Record<string, unknown>>('me')
    assert.equal(me.name, 'Dr. Robin Ahmadi')
    assert.equal(me.fhirUser, `Practitioner/${me.practitionerId}`)
  })

  it('returns the conditions, medications and vital signs of this patient alone, in order', async () => {
    const conditions = await json<Bundle>('conditions')
    const dates = conditions.entry.map(({ resource }) => resource.recordedDate ?? '')
    assert.ok(dates.length > 1)
    assert.deepEqual(dates, dates.toSorted().toReversed())
    const lists = [
      conditions,
      await json<Bundle>('medications'),
      await json<Bundle>('vitals?code=85354-9&_count=5'),
    ]
    for (const { entry } of lists) {
      assert.ok(entry.length > 0)
      for (const { resource } of entry)
        assert.deepEqual(resource.subject, {
          ...(resource.subject as object),
          reference: `Patient/${PATIENT}`,
        })
    }
    assert.equal(lists[2]?.entry.length, 5)
  })

  it('ends with the login of the clinician, and reports that end from the start', async () => {
    const { expiresAt } = await json<{ expiresAt: string }>('session')
    const [{ expires_at } = { expires_at: 0 }] = await stack.store.db
      .selectFrom('login')
      .select('expires_at')
      .execute()
    assert.ok(Date.parse(expiresAt) <= expires_at)
  })

  it('renews once for 50 requests after the access token has expired (SESSION-4)', async () => {
    const used = async () =>
      (
        await stack.store.db
          .selectFrom('refresh_token')
          .select('token_hash')
          .where('used_at', 'is not', null)
          .execute()
      ).length
    const before = await used()
    time.advance(301)
    const responses = await Promise.all(
      Array.from({ length: 50 }, (_, at) => user.api(['patient', 'session', 'conditions'][at % 3] ?? '')),
    )
    assert.deepEqual([...new Set(responses.map(({ status }) => status))], [200])
    assert.equal((await used()) - before, 1)
    const grants = await stack.store.db.selectFrom('grant').select('revoked_at').execute()
    assert.deepEqual(
      grants.filter(({ revoked_at }) => revoked_at !== null),
      [],
    )
  })

  it('ends within the lifetime of an access token after the clinician signs out', async () => {
    await user.request(`${stack.settings.issuerUrl}/logout`, { method: 'POST' })
    time.advance(301)
    assert.equal((await user.api('session')).status, 401)
    assert.equal((await user.api('patient')).status, 401)
  })

  it('logs no token, code or name (APP-5)', () => {
    assert.doesNotMatch(stack.log(), /eyJ[\w-]+\.|launch=|code=|state=|Juniper/)
  })
})

describe('the session API with a granular scope', () => {
  const LABORATORY = 'http://terminology.hl7.org/CodeSystem/observation-category|laboratory'
  let stack: Stack
  let user: HttpUser
  before(async () => {
    stack = await startStack({
      env: {
        SMART_SAMPLE_PATIENTS: '5',
        SMART_APP_SCOPE: `launch patient/Patient.r patient/Patient.s patient/Observation.rs?category=${LABORATORY}`,
      },
    })
    user = new HttpUser(stack)
    await user.signIn()
    await user.launch(PATIENT)
  })
  after(() => stack.close())

  it('accepts it, and returns only resources that it covers (API-10)', async () => {
    const response = await user.api('vitals')
    assert.equal(response.status, 200)
    assert.equal(((await response.json()) as Bundle).total, 0)
  })

  it('names the missing scopes', async () => {
    const response = await user.api('summary')
    assert.equal(response.status, 403)
    const { issue } = (await response.json()) as { issue: { details: { text: string } }[] }
    assert.match(issue[0]?.details.text ?? '', /Not granted: (patient\/Patient\.rs )?patient\/Condition\.rs/)
    assert.equal((await user.api('me')).status, 403)
  })
})
