/** One launch through the whole service, and its records in the audit trail. */
import { createEventIds } from '../src/audit/index.ts'

const ids = createEventIds(Buffer.alloc(32))

import assert from 'node:assert/strict'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { findRecords, type KeptRecord, toAuditEvent } from '../src/audit/index.ts'
import { validate } from '../src/fhir/index.ts'
import { openStore } from '../src/store/index.ts'
import { expectAccessible, inspectOnEveryScreen, useBrowser } from './support/browser.ts'
import { postgresDatabases } from './support/databases.ts'
import { HttpUser } from './support/http-user.ts'
import { type Stack, startStack } from './support/stack.ts'
import { newPlace, type Place, startProcess } from './support/started.ts'
import { launch, logIn, openDeveloperPage, openPatient } from './support/walk.ts'

const open = useBrowser()

for (const name of ['SQLite', 'PostgreSQL'] as const) {
  describe(`the audit trail of a launch, on ${name}`, () => {
    const postgres = postgresDatabases()
    let stack: Stack
    before(async () => {
      stack = await startStack({
        env: name === 'SQLite' ? {} : { SMART_DATABASE_URL: await postgres.create() },
      })
    })
    after(async () => {
      await stack.close()
      await postgres.remove()
    })

    it('has one launch id from the portal to the end of the session, and no patient name (AUDIT-1, AUDIT-3)', async () => {
      const user = new HttpUser(stack)
      const { issuerUrl, appUrl } = stack.settings
      await user.signIn()
      await user.open(`${issuerUrl}/portal?search=Juniper`)
      await user.launch('patient-1')
      assert.equal((await user.api('summary')).status, 200)
      await user.open(`${appUrl}/logout`, { method: 'POST' })
      const all = await findRecords(stack.store, { limit: 1000, order: 'oldest' })
      const id = all.find(record => record.kind === 'launch')?.launch_id
      assert.ok(id)
      const mine = all.filter(record => record.launch_id === id)
      const kinds = new Set(mine.map(record => record.kind))
      for (const kind of ['launch', 'authorize', 'token', 'session-open', 'fhir', 'api', 'session-end'])
        assert.ok(kinds.has(kind), `${kind} is not among ${[...kinds].join(', ')}`)
      assert.deepEqual([...new Set(mine.map(record => record.patient_id))].length, 1)
      assert.deepEqual([...new Set(mine.map(record => record.client_id))], ['sallyport-app'])
      const reads = mine.filter(record => record.kind === 'fhir' && record.allowed)
      assert.ok(reads.every(record => record.decided_by?.startsWith('patient/')))
      assert.ok(all.some(record => record.kind === 'login' && record.allowed))
      for (const record of all)
        assert.deepEqual(validate(toAuditEvent(record, { fhirBaseUrl: 'http://fhir.test/fhir', ids })), [])
      assert.doesNotMatch(JSON.stringify(all), /juniper|\balba\b|eyJ[\w-]+\./i)
    })

    it('has one launch id from the login of a standalone launch to the end of its session', async () => {
      const user = new HttpUser(stack)
      const { issuerUrl, appUrl } = stack.settings
      const { username, password } = stack.user
      const send = async (path: string, page: Response, fields: Readonly<Record<string, string>>) => {
        const hidden = (await page.text()).matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)
        const kept = Object.fromEntries([...hidden].map(([, name = '', value = '']) => [name, value]))
        const body = new URLSearchParams({ ...kept, ...fields })
        return user.open(`${issuerUrl}${path}`, { method: 'POST', body })
      }
      const earlier = (await findRecords(stack.store, { limit: 1 }))[0]?.id ?? 0
      const login = await user.open(`${appUrl}/launch`)
      const again = await send('/login', login, { username, password: 'not this' })
      const picker = await send('/login', again, { username, password })
      await send('/oauth2/pick', picker, { patientId: 'patient-1', step: 'encounter' })
      assert.equal((await user.api('patient')).status, 200)
      await user.open(`${appUrl}/logout`, { method: 'POST' })
      const all = (await findRecords(stack.store, { limit: 1000, order: 'oldest' })).filter(
        it => it.id > earlier,
      )
      const id = all.find(record => record.kind === 'authorize')?.launch_id
      assert.ok(id)
      const kinds = all.filter(it => it.launch_id === id).map(it => `${it.kind} ${it.allowed}`)
      for (const kind of ['authorize', 'token', 'session-open', 'fhir', 'api', 'session-end', 'login'])
        assert.ok(kinds.includes(`${kind} true`), `${kind} is not among ${kinds.join(', ')}`)
      assert.ok(kinds.includes('login false'))
      const mine = all.filter(it => it.launch_id === id)
      assert.deepEqual([...new Set(mine.map(it => it.client_id))], ['sallyport-app'])
      assert.ok(mine.filter(it => it.kind !== 'login').every(it => it.patient_id === 'patient-1'))
    })
  })
}

describe('/activity', () => {
  let stack: Stack
  before(async () => {
    stack = await startStack({ clock: () => Date.now() + ahead })
  })
  after(() => stack.close())

  // A minute after the one before: within a minute repeated anonymous requests are counted.
  let ahead = 0
  const fhir = (path: string) => {
    ahead += 60_000
    return fetch(`${stack.settings.fhirBaseUrl}/${path}`)
  }

  it('shows every request by launch, live, with Pause, and is accessible on every screen (ACTIVITY-2)', async () => {
    const { page, faults } = await open()
    await logIn(page, stack)
    await openPatient(page, stack)
    await launch(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/portal`)
    await openDeveloperPage(page, 'Activity')
    await page.getByRole('heading', { level: 1, name: 'Activity' }).waitFor()
    await page.getByText('Search inside this patient’s record').first().waitFor()
    const demo = page.getByRole('region', { name: 'Demo app' })
    await demo.getByText('The app got an access token').click()
    await demo.getByText('Claims of the access token').waitFor()
    assert.equal(await page.getByText('Search by Dr. Robin Ahmadi: Patient list').count(), 0)
    assert.equal(await page.getByText('Juniper').count(), 0)

    await fhir('Patient/juniper-nobody')
    const refused = page.getByRole('listitem').filter({ hasText: 'juniper-nobody' })
    await refused.getByText('Refused').waitFor()
    await refused.getByText('Explain this').click()
    await refused.getByText('The request has no access token.').waitFor()
    await page.getByText('Live, last hour').waitFor()
    assert.ok(await demo.getByText('Claims of the access token').isVisible())
    await inspectOnEveryScreen(page, 'activity')

    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByText('Paused').waitFor()
    await fhir('Patient/while-paused')
    const requested: string[] = []
    page.on('request', request => requested.push(request.url()))
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByText('while-paused').waitFor()
    assert.ok(requested.length > 0)

    await page.getByRole('link', { name: /^Refused/ }).click()
    await page.waitForURL('**/activity?result=refused')
    assert.equal(await page.getByText('Allowed', { exact: true }).count(), 0)
    assert.deepEqual(faults, [])
  })

  it('works without scripts, by Refresh and by its filters (ACTIVITY-2)', async () => {
    const { page } = await open({ javaScriptEnabled: false })
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/activity?app=nobody`)
    await page.getByRole('heading', { name: 'No matching events' }).waitFor()
    await page.getByRole('link', { name: 'Show all', exact: true }).click()
    await fhir('Patient/by-refresh')
    assert.equal(await page.getByText('by-refresh').count(), 0)
    await page.getByRole('link', { name: 'Refresh' }).click()
    await page.getByText('by-refresh').waitFor()
    await page.getByLabel('App', { exact: true }).selectOption('Pages of this server')
    await page.getByRole('button', { name: 'Show' }).click()
    await page.getByRole('region', { name: 'Pages of this server' }).waitFor()
    await page.getByText('Search by Dr. Robin Ahmadi: Patient list').first().waitFor()
    assert.equal(await page.getByText('by-refresh').count(), 0)
  })

  it('shows the event of an error page: a simulated token error, and a redirect_uri that is not registered (ACTIVITY-5)', async () => {
    const { page } = await open()
    await logIn(page, stack)
    const { issuerUrl, appUrl, fhirBaseUrl } = stack.settings
    const follow = async () => {
      const opened = page.waitForEvent('popup')
      await page.locator('dd a').click()
      return opened
    }
    await page.goto(
      `${issuerUrl}/lab/launch?client=sallyport-app&patient=patient-1&simulate=token:invalid_client`,
    )
    await page.getByRole('heading', { name: 'This launch was refused' }).waitFor()
    const simulated = await follow()
    await simulated.getByText('The lab simulates this error (token:invalid_client)').waitFor()

    const redirect_uri = `${appUrl}/callback/`
    const query = { client_id: 'sallyport-app', redirect_uri, response_type: 'code', aud: fhirBaseUrl }
    await page.goto(`${issuerUrl}/oauth2/authorize?${new URLSearchParams(query)}`)
    const wrong = await follow()
    await wrong.getByText(redirect_uri, { exact: true }).waitFor()
    await wrong.getByText(`${appUrl}/callback`, { exact: true }).waitFor()
    await wrong.getByText('The difference: the slash at the end').waitFor()
    await expectAccessible(wrong)
  })
})

const status = async (url: string) => (await fetch(url)).status

describe('sallyport start', () => {
  const made: Place[] = []
  after(() => {
    for (const place of made) place.remove()
  })

  it('loses no record of a completed request if it is killed (AUDIT-2)', async () => {
    const here = await newPlace()
    made.push(here)
    const { child, printed, ended } = startProcess(['start'], here)
    await printed(/is running/)
    const user = new HttpUser({
      settings: { issuerUrl: here.authUrl, appUrl: here.appUrl },
      user: { username: 'clinician', password: 'sallyport', name: 'Dr. Robin Ahmadi' },
    })
    await user.signIn()
    const answered: string[] = []
    let killed = false
    const enough = Promise.withResolvers<void>()
    const ask = async (client: number) => {
      for (let at = 0; !killed; at++) {
        const id = `killed-${client}-${at}`
        const headers = { 'x-request-id': id }
        const launch = user.request(`${here.authUrl}/portal/launch`, { method: 'POST', headers })
        // A request that the kill cuts off was not answered.
        const answer = await launch.catch(() => undefined)
        if (answer?.status === 400 && answered.push(id) === 200) enough.resolve()
      }
    }
    const clients = Array.from({ length: 8 }, (_, client) => ask(client))
    await enough.promise
    child.kill('SIGKILL')
    killed = true
    await Promise.all(clients)
    await ended()
    const store = await openStore(`sqlite:${join(here.env.SMART_DATA_DIR ?? '', 'sallyport.db')}`)
    const kept = new Set(
      (await findRecords(store, { limit: 100_000 })).map((it: KeptRecord) => it.request_id),
    )
    await store.close()
    assert.deepEqual(
      answered.filter(id => !kept.has(id)),
      [],
    )
  })

  it('refuses requests to the FHIR server while the database is unavailable, and recovers', async () => {
    const here = await newPlace()
    made.push(here)
    const { child, printed, ended } = startProcess(['start', 'fhir'], here)
    await printed(/is running/)
    assert.equal(await status(`${here.fhirUrl}/metadata`), 200)
    const file = join(here.env.SMART_DATA_DIR ?? '', 'sallyport.db')
    renameSync(file, `${file}.away`)
    const refused = await fetch(`${here.fhirUrl}/Patient/1`)
    assert.equal(refused.status, 503)
    const body = (await refused.json()) as { resourceType: string; issue: { code: string }[] }
    assert.equal(body.resourceType, 'OperationOutcome')
    assert.equal(body.issue[0]?.code, 'transient')
    renameSync(`${file}.away`, file)
    // The server waits a second before it retries.
    while ((await status(`${here.fhirUrl}/Patient/1`)) !== 401) assert.equal(child.exitCode, null)
    child.kill('SIGTERM')
    assert.deepEqual(await ended(), { exitCode: 0, signal: null })
  })
})
