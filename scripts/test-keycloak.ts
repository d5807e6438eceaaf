/**
 * `npm run test:keycloak`: sign-in, groups, logout in both directions and an outage against Keycloak itself, which is fetched
 * from Maven Central. Needs Java 17, Maven and about 1 GB of memory, so it is not part of `npm test`.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { freePorts } from '../test/support/free-ports.ts'
import { newPlace, type Place, type Started, startProcess } from '../test/support/started.ts'
import { Browser } from './test-keycloak/browser.ts'
import { type Keycloak, startKeycloak } from './test-keycloak/keycloak.ts'
import { makeRealm } from './test-keycloak/realm.ts'

const SECRET = 'the secret of sallyport at keycloak'

describe('sign-in with Keycloak', () => {
  let keycloak: Keycloak
  let place: Place
  let sallyport: Started
  before(async () => {
    const [port = 0] = await freePorts(1)
    place = await newPlace({
      SMART_LOGIN_PROVIDERS: JSON.stringify([
        {
          id: 'hospital',
          name: 'Hospital account',
          issuer: `http://localhost:${port}/realms/staff`,
          'client-id': 'sallyport',
          'client-secret': SECRET,
          'fhir-user': { template: 'Practitioner/{employee_number}' },
          allow: { claim: 'groups', values: ['clinicians'] },
          provision: true,
        },
      ]),
    })
    // Sallyport starts first: it does not need the provider to start.
    sallyport = startProcess(['start'], place)
    await sallyport.printed(/is running/)
    keycloak = await startKeycloak(port, makeRealm(place.authUrl, SECRET))
  })
  after(async () => {
    await keycloak?.stop()
    sallyport.child.kill('SIGTERM')
    await sallyport.ended()
    place.remove()
  })

  const signIn = async (username: string, browser = new Browser()) => {
    const form = await browser.open(`${place.authUrl}/login/providers/default`)
    const page = await browser.submit(form, { username, password: `password of ${username}` })
    return { browser, page }
  }
  const isSignedIn = async (browser: Browser) =>
    new URL((await browser.open(`${place.authUrl}/portal`)).url).pathname === '/portal'

  it('shows the portal to a clinician', async () => {
    const { page } = await signIn('ada')
    assert.equal(page.url, `${place.authUrl}/portal`, page.body)
    assert.match(page.body, /Test Byron/)
  })

  it('refuses a user without the group', async () => {
    const { page, browser } = await signIn('bob')
    assert.equal(page.status, 403)
    assert.match(page.body, /Your account may not use Sallyport/)
    assert.equal(await isSignedIn(browser), false)
  })

  it('signs out at Keycloak too', async () => {
    const { browser } = await signIn('ada')
    const between = await browser.open(`${place.authUrl}/logout`, {})
    const page = await browser.submit(between)
    assert.equal(page.url, `${place.authUrl}/login?signed-out=1`, page.body)
    const again = await browser.open(`${place.authUrl}/login/providers/default`)
    assert.match(again.body, /name="password"/, 'Keycloak asks for the password again')
  })

  it('ends the login within 5 s of a logout at Keycloak', async () => {
    // Of several sessions that one request ends, Keycloak reports one.
    await keycloak.logOut('ada')
    const { browser } = await signIn('ada')
    assert(await isSignedIn(browser))
    await keycloak.logOut('ada')
    const end = Date.now() + 5_000
    while (await isSignedIn(browser)) {
      assert(Date.now() < end, 'the login still works')
      await pause(100)
    }
  })

  it('names an outage, and passwords still work', async () => {
    await keycloak.stop()
    // A provider counts as reachable for 10 s after a response.
    await pause(10_000)
    const page = await new Browser().open(`${place.authUrl}/login/providers/default`)
    assert.equal(page.status, 503)
    assert.match(page.body, /The sign-in provider is not available/)
    const form = { username: 'clinician', password: 'sallyport' }
    assert.equal((await new Browser().open(`${place.authUrl}/login`, form)).url, `${place.authUrl}/portal`)
  })
})
