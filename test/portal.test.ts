/** The portal in a real browser: sign-in by the hospital, search, keyboard, decision support, the lab and registered apps. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { CLIENT_DEFAULTS, insertClient } from '../src/auth/index.ts'
import { startCdsService, type TestCdsService } from '../src/auth/testing/test-cds-service.ts'
import { isRecord } from '../src/core/index.ts'
import { expectAccessible, inspectOnEveryScreen, screenshot, useBrowser } from './support/browser.ts'
import { freePorts } from './support/free-ports.ts'
import { HOSPITAL_CLIENT, Hospital } from './support/hospital.ts'
import { type Stack, startStack } from './support/stack.ts'
import { launch, logIn, openDeveloperPage, openPatient, pickPatient, signIn } from './support/walk.ts'

let stack: Stack
let hospital: Hospital
let advice: TestCdsService
before(async () => {
  const [port] = await freePorts(1)
  const issuerUrl = `http://localhost:${port}`
  hospital = await Hospital.start({
    users: {
      'user-1': { preferred_username: 'ada', name: 'Dr. Ada Byron', fhirUser: 'Practitioner/practitioner-1' },
    },
    callbacks: [`${issuerUrl}/login/callback`],
    loggedOut: `${issuerUrl}/login/logged-out`,
  })
  advice = await startCdsService()
  stack = await startStack({
    env: {
      SMART_CDS_SERVICES: JSON.stringify([
        { id: 'heart', name: 'Heart advice', url: advice.url, 'client-id': 'advice' },
      ]),
      SMART_SAMPLE_PATIENTS: '30',
      SMART_ISSUER_URL: issuerUrl,
      SMART_LOGIN_PROVIDERS: JSON.stringify([
        {
          id: 'hospital',
          name: 'Hospital account',
          issuer: hospital.issuer,
          'client-id': HOSPITAL_CLIENT.id,
          'client-secret': HOSPITAL_CLIENT.secret,
          'fhir-user': { claim: 'fhirUser' },
          provision: true,
        },
      ]),
    },
  })
  const app = {
    ...CLIENT_DEFAULTS,
    authMethod: 'none',
    scope: 'patient/Patient.rs',
    redirectUris: [advice.url],
  } as const
  await stack.store.db.transaction().execute(trx => insertClient(trx, 'advice', { app, now: Date.now() }))
})
after(() => Promise.all([stack?.close(), hospital?.close(), advice?.close()]))
const open = useBrowser()

const DETAIL = `Check the **blood pressure**.

1. Measure _twice_
2. See [the guideline](https://guideline.example/)

| Drug | Dose |
|---|---|
| Lisinopril | \`10 mg\` |

> Not in pregnancy.`

/** The element with the focus. */
async function focused(page: Page): Promise<string> {
  return page.evaluate(() => {
    const at = document.activeElement
    return at === null ? '' : `${at.tagName} ${at.getAttribute('name') ?? at.textContent?.trim() ?? ''}`
  })
}

/** Presses Tab until the element that matches has the focus. */
async function tabTo(page: Page, wanted: RegExp, most = 80): Promise<void> {
  for (let presses = 0; presses <= most; presses++) {
    if (wanted.test(await focused(page))) return
    await page.keyboard.press('Tab')
  }
  assert.fail(`Tab never reaches ${wanted}; it is at ${await focused(page)}`)
}

describe('the portal', () => {
  it('begins with the account of the hospital, and the logout ends the session there too (SIGNIN-11)', async () => {
    const { page } = await open()
    hospital.user = 'user-1'
    await page.goto(`${stack.settings.issuerUrl}/portal`)
    await page.getByRole('link', { name: 'Hospital account' }).click()
    await page.getByText('Dr. Ada Byron').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL(url => url.origin === hospital.issuer)
    await page.getByRole('button', { name: /Yes, sign me out/ }).click()
    await page.getByText('You are signed out.').waitFor()
    hospital.user = ''
    await page.getByRole('link', { name: 'Hospital account' }).click()
    await page.getByRole('heading', { name: 'You were not signed in' }).waitFor()
    await expectAccessible(page)
  })

  it('follows the settings of the lab: a link without sign-in, and a simulated error in the app and in the activity (LAB-7)', async () => {
    const { page, faults } = await open()
    await logIn(page, stack)
    await openPatient(page, stack)
    await page.getByRole('button', { name: 'Launch settings for developers' }).click()
    await page.getByText('Skip sign-in', { exact: true }).check()
    await page.getByText('FHIR requests', { exact: true }).click()
    await page.getByText('fhir:429', { exact: true }).check()
    await page.getByText(/^curl -s .*fhir%3A429/).waitFor()
    await inspectOnEveryScreen(page, 'lab')
    const link = await page.getByRole('link', { name: 'Launch', exact: true }).getAttribute('href')
    assert.deepEqual(faults, [])

    const { page: other } = await open()
    await other.goto(link ?? assert.fail())
    await other.waitForURL(`${stack.settings.appUrl}/s/*`)
    await page.goto(`${stack.settings.issuerUrl}/activity?result=refused`)
    await page.getByText('Simulated by the lab: fhir:429').first().waitFor()
  })

  it('shows the cards of a CDS service, which can read only this patient, and launches the app of a card (CDS-1)', async () => {
    const { appUrl, fhirBaseUrl } = stack.settings
    const smart = { label: 'Open the summary', url: `${appUrl}/launch`, type: 'smart', appContext: 'plan' }
    const tokens: unknown[] = []
    const read = async (path: string) => {
      const response = await fetch(`${fhirBaseUrl}/${path}`, {
        headers: { authorization: `Bearer ${tokens.at(-1)}` },
      })
      return response.status
    }
    advice.respond(async ({ hook: { fhirAuthorization, context } }) => {
      tokens.push(isRecord(fhirAuthorization) && fhirAuthorization.access_token)
      const own = isRecord(context) ? context.patientId : undefined
      const statuses = [
        await read(`Patient/${own}`),
        await read('Patient/patient-2'),
        await read(`Observation?patient=${own}`),
      ]
      const card = {
        summary: `Read: ${statuses.join(' ')}`,
        indicator: 'warning',
        source: { label: 'Guideline' },
      }
      return { cards: [{ ...card, detail: DETAIL, links: [smart] }] }
    })
    const { page, faults } = await open()
    await logIn(page, stack)
    await openPatient(page, stack)
    await page.getByRole('heading', { name: 'Read: 200 403 403' }).waitFor()
    const [card, encounters] = await Promise.all([
      page.getByRole('article').boundingBox(),
      page.getByRole('group', { name: 'Encounter' }).boundingBox(),
    ])
    assert.ok(card && encounters && card.y < encounters.y, 'cards come before the launch form')
    await inspectOnEveryScreen(page, 'portal-cards')
    await page.getByRole('link', { name: 'Show all' }).click()
    await page.getByText('Not in pregnancy.').waitFor()
    await page.getByRole('link', { name: 'Show all' }).waitFor({ state: 'hidden' })
    await inspectOnEveryScreen(page, 'portal-cards-all')
    await page.getByRole('link', { name: 'Open the summary' }).click()
    await page.waitForURL(`${appUrl}/s/*`)
    await page.getByRole('heading', { level: 1, name: 'Juniper, Alba' }).waitFor()
    assert.deepEqual(faults, [])

    const { page: plain } = await open({ javaScriptEnabled: false })
    await signIn(plain, stack)
    await pickPatient(plain, 'Juniper, Alba')
    await plain.getByRole('link', { name: 'Show decision support' }).click()
    await plain.getByRole('heading', { name: 'Read: 200 403 403' }).waitFor()
    await screenshot(plain, 'cards-page')
    await plain.getByRole('link', { name: 'Open the summary' }).click()
    await plain.waitForURL(`${appUrl}/s/*`)
    advice.respond(() => ({ cards: [] }))
  })

  it('moves nothing when cards arrive, keeps Launch in view, and leads to a missing choice (CDS-9)', async () => {
    const arrive = Promise.withResolvers<void>()
    const card = { indicator: 'critical', source: { label: 'Guideline' }, detail: DETAIL }
    advice.respond(async () => {
      await arrive.promise
      return { cards: ['First', 'Second', 'Third'].map(summary => ({ ...card, summary })) }
    })
    const { page, faults } = await open()
    await logIn(page, stack)
    // Without an encounter in progress, none is chosen.
    let patient = 2
    do await openPatient(page, stack, `patient-${patient++}`)
    while ((await page.getByRole('radio', { checked: true }).count()) > 0)
    const button = page.getByRole('button', { name: /^Launch Demo app/ })
    const before = await button.boundingBox()
    const first = page.getByRole('radio').first()
    const place = await first.boundingBox()
    await page.getByText('Loading decision support…').waitFor()
    arrive.resolve()
    await page.getByRole('heading', { name: 'Third' }).waitFor()
    assert.deepEqual(await button.boundingBox(), before)
    assert.deepEqual(await first.boundingBox(), place)
    const { height = 0 } = page.viewportSize() ?? {}
    assert.ok(before && before.y + before.height <= height, 'Launch is in view')
    await inspectOnEveryScreen(page, 'portal-three-cards')
    await button.click()
    await page.getByText('No encounter chosen.').waitFor()
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('name')), 'encounterId')
    assert.deepEqual(
      faults.filter(fault => !/status of 400/.test(fault)),
      [],
    )
    advice.respond(() => ({ cards: [] }))
  })

  it('shows the summaries of all critical cards, however long, and the rest on demand (CDS-9)', async () => {
    const words = 'Serious interaction: '.repeat(7)
    const cards = [
      ...['one', 'two', 'three'].map(end => ({
        summary: `${words.slice(0, 130)} ${end}`,
        indicator: 'critical',
      })),
      ...['four', 'five', 'six'].map(summary => ({ summary, indicator: 'info' })),
    ]
    advice.respond(() => ({
      cards: cards.map(card => ({ ...card, source: { label: 'Guideline' }, detail: DETAIL })),
    }))
    for (const viewport of [
      { width: 1280, height: 720 },
      { width: 390, height: 844 },
    ]) {
      const { page, faults } = await open({ viewport })
      await logIn(page, stack)
      await openPatient(page, stack)
      const box = page.locator('.cds-place')
      await box.getByText('Decision support: 3 critical, 3 information').waitFor()
      const isInside = (text: RegExp) =>
        box.getByRole('heading', { name: text }).evaluate(summary => {
          const { bottom } = summary.getBoundingClientRect()
          const place = summary.closest('.cds-place')
          return place !== null && bottom <= place.getBoundingClientRect().bottom && place.scrollTop === 0
        })
      for (const text of [/one$/, /two$/, /three$/]) assert.ok(await isInside(text), String(text))
      assert.equal(await box.getByText('Not in pregnancy.').first().isVisible(), false)
      await screenshot(page, `portal-long-cards-${viewport.width}`)
      await page.getByRole('link', { name: 'Show all' }).press('Enter')
      await box.getByText('Not in pregnancy.').last().waitFor()
      assert.ok(await isInside(/six$/))
      await page.getByRole('link', { name: 'Show less' }).press('Enter')
      await box.getByText('Not in pregnancy.').first().waitFor({ state: 'hidden' })
      assert.equal(await page.getByRole('link', { name: 'Show less' }).count(), 0)
      assert.ok(await isInside(/three$/))
      assert.deepEqual(faults, [])
    }
    advice.respond(() => ({ cards: [] }))
  })

  it('shows the beginning of the only card in the room that is kept for cards (CDS-9)', async () => {
    const { page } = await open()
    await logIn(page, stack)
    const place = page.locator('.cds-place')
    for (const height of [900, 720])
      for (const indicator of ['critical', 'warning']) {
        const arrive = Promise.withResolvers<void>()
        const card = {
          summary: 'Check the kidneys',
          indicator,
          source: { label: 'Guideline' },
          detail: DETAIL,
        }
        advice.respond(async () => {
          await arrive.promise
          return { cards: [card] }
        })
        await page.setViewportSize({ width: 1280, height })
        await openPatient(page, stack)
        const before = await place.boundingBox()
        arrive.resolve()
        const end = await page.getByText('Measure twice').boundingBox()
        assert.deepEqual(await place.boundingBox(), before)
        assert.ok(before && end && end.y + end.height <= before.y + before.height, `${height} ${indicator}`)
      }
    advice.respond(() => ({ cards: [] }))
  })

  it('shows each card as a whole line or not at all, beside a link to all (CDS-9)', async () => {
    const indicators = ['critical', 'warning', 'info', 'info', 'info', 'info']
    // Short: the fonts of a machine decide how many lines a summary takes.
    const summary = 'Check the blood pressure'
    const cards = indicators.map(indicator => ({
      summary,
      indicator,
      source: { label: 'Guideline' },
      detail: DETAIL,
    }))
    advice.respond(() => ({ cards }))
    const { page } = await open()
    await logIn(page, stack)
    for (const height of [1000, 720]) {
      await page.setViewportSize({ width: 1280, height })
      await openPatient(page, stack)
      await page.getByRole('link', { name: 'Show all' }).waitFor()
      const shown = await page.locator('.cds__others').evaluate(box => {
        const place = box.getBoundingClientRect()
        return [...box.children].map(card => {
          const { left, bottom } = card.getBoundingClientRect()
          return left >= place.right ? 'not' : bottom <= place.bottom ? 'whole' : 'cut'
        })
      })
      assert.match(shown.join(' '), /^(whole )*not( not)*$/, `${height} px`)
      if (height === 1000) assert.equal(shown[0], 'whole')
    }
    advice.respond(() => ({ cards: [] }))
  })

  it('has room for the permissions of each record of an app (REVOKE-3)', async () => {
    const { page } = await open()
    await logIn(page, stack)
    const { db } = stack.store
    for (const [id, scope] of [
      ['patient-1', 'patient/Patient.rs patient/Observation.crs patient/Condition.rs'],
      ['patient-2', 'patient/Patient.rs patient/Condition.rs patient/MedicationRequest.rs'],
    ] as const) {
      await openPatient(page, stack, id)
      await launch(page, stack)
      const grant = db.updateTable('grant').set({ scope: `launch openid offline_access ${scope}` })
      await grant.where('patient_id', '=', id).where('client_id', '=', stack.settings.app.clientId).execute()
    }
    await page.goto(`${stack.settings.issuerUrl}/manage`)
    const records = await page.locator('.apps__records').boundingBox()
    assert.ok(records && records.width > 180, `${records?.width} px`)
    await inspectOnEveryScreen(page, 'manage-each-record')
  })

  it('launches with Ctrl+Enter from anywhere beside the patient (PORTAL-14)', async () => {
    const { page, faults } = await open()
    await logIn(page, stack)
    for (const [key, place] of [
      ['Control+Enter', '#picked'],
      ['Meta+Enter', 'input[name="encounterId"]'],
    ] as const) {
      await openPatient(page, stack)
      await page.getByText('Ctrl+Enter').waitFor()
      await page.getByLabel('No encounter').check()
      await page.locator(place).first().focus()
      await page.keyboard.press(key)
      await page.waitForURL(`${stack.settings.appUrl}/s/*`)
    }
    assert.deepEqual(faults, [])
  })

  it('registers an app in the browser, and launches it from the portal (LAB-8)', async () => {
    const { page, faults } = await open()
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/portal`)
    await openDeveloperPage(page, 'Lab')
    await openDeveloperPage(page, 'Registered apps')
    await page.getByRole('link', { name: 'Register an app' }).click()
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('My app')
    await page.getByLabel('Redirect URIs', { exact: true }).fill('/callback')
    await page.getByRole('button', { name: 'Register app' }).click()
    await inspectOnEveryScreen(page, 'apps-new')
    await page.getByLabel('Redirect URIs', { exact: true }).fill(`${stack.settings.appUrl}/callback`)
    await page.getByLabel('Launch URL').fill(`${stack.settings.appUrl}/absent`)
    await page.getByRole('button', { name: 'Register app' }).click()
    await inspectOnEveryScreen(page, 'apps-registered')
    await openDeveloperPage(page, 'Registered apps')
    await inspectOnEveryScreen(page, 'apps')
    await page.getByRole('link', { name: 'Change My app' }).click()
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByRole('link', { name: 'Launch from the portal' }).click()
    const all = page.getByRole('list', { name: 'Patients', exact: true })
    await all.getByRole('link', { name: /^Juniper, Alba\s/ }).click()
    await page.getByRole('radio', { name: 'No encounter' }).check()
    await page.getByRole('button', { name: 'Launch My app' }).click()
    await page.waitForURL(`${stack.settings.appUrl}/absent?iss=*`)
    assert.deepEqual(
      faults.filter(fault => !/status of 40[04]/.test(fault)),
      [],
    )
  })

  it('shows earlier encounters on demand, and then fewer again, but always the chosen one (PORTAL-14)', async () => {
    for (const [viewport, javaScriptEnabled] of [
      [{ width: 1280, height: 720 }, false],
      [{ width: 390, height: 844 }, true],
    ] as const) {
      const { page } = await open({ viewport, javaScriptEnabled })
      await logIn(page, stack)
      await openPatient(page, stack)
      const earlier = page.locator('#earlier .choice')
      const countShown = () =>
        earlier.evaluateAll(all => all.filter(one => getComputedStyle(one).position !== 'absolute').length)
      assert.equal(await countShown(), 0)
      const count = await earlier.count()
      assert.ok(count > 3)
      await page.getByRole('link', { name: /^Show \d+ earlier encounters/ }).press('Enter')
      assert.equal(await countShown(), count)
      await earlier.nth(2).getByRole('radio').check()
      await page.getByRole('link', { name: 'Show less' }).press('Enter')
      assert.equal(await countShown(), 1)
      assert.ok(await earlier.nth(2).getByRole('radio').isChecked())
      if (javaScriptEnabled) await expectAccessible(page)
    }
  })

  it('has the pages of developers in a menu of their own, without scripts (PORTAL-14)', async () => {
    const { page } = await open({ javaScriptEnabled: false })
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/portal`)
    const navigation = page.getByRole('navigation', { name: 'Main' })
    const listLinks = () => navigation.getByRole('link').allTextContents()
    const own = ['Patients', 'Apps with access', 'Account']
    const developers = ['Lab', 'Registered apps', 'Activity']
    assert.deepEqual(await listLinks(), own)
    await tabTo(page, /^BUTTON Developer$/)
    await page.keyboard.press('Enter')
    assert.deepEqual(await listLinks(), [...own, ...developers])
    await page.keyboard.press('Escape')
    assert.deepEqual(await listLinks(), own)
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/lab')
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByRole('button', { name: 'Menu' }).press('Enter')
    assert.deepEqual(await listLinks(), [...own, ...developers])
  })

  it('has an accessible menu for developers (PORTAL-14)', async () => {
    const { page } = await open()
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/portal`)
    await page.getByRole('button', { name: 'Developer' }).click()
    await expectAccessible(page)
    await page.setViewportSize({ width: 390, height: 844 })
    await page.goto(`${stack.settings.issuerUrl}/lab`)
    await page.getByRole('button', { name: 'Menu' }).press('Enter')
    await expectAccessible(page)
  })

  it('shows no patients in other tabs after a sign-out, and then returns there (PORTAL-14)', async () => {
    const { page, context } = await open()
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/portal?search=juniper&patient=patient-1#encounters`)
    const elsewhere = await context.newPage()
    await elsewhere.goto(`${stack.settings.issuerUrl}/manage`)
    await elsewhere.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
    assert.equal(await page.getByText('Juniper').count(), 0)
    await page.getByLabel('Username').fill(stack.user.username)
    await page.getByLabel('Password').fill(stack.user.password)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.waitForURL('**/portal?search=juniper&patient=patient-1')
  })

  it('opens the only patient that a search finds with Enter, and moves through several with the arrow keys (PORTAL-4)', async () => {
    const { page, faults } = await open()
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/portal`)
    const search = page.getByLabel('Find a patient by name')
    await search.fill('Juniper')
    await search.press('Enter')
    await page.waitForURL('**/portal?search=Juniper')
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute('data-patient-id'))
    await search.press('ArrowDown')
    assert.equal(await focused(), 'patient-1')
    await page.keyboard.press('ArrowDown')
    assert.equal(await focused(), 'patient-2')
    await page.keyboard.press('ArrowDown')
    assert.equal(await focused(), 'patient-2')
    await page.keyboard.press('Home')
    await page.keyboard.press('ArrowUp')
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'search')
    // Somebody who has not pressed Enter sees the list.
    await page.goto(`${stack.settings.issuerUrl}/portal?search=${encodeURIComponent('Juniper, Alban')}`)
    await page.getByText('1 patient matches').waitFor()
    await search.press('Enter')
    await page.waitForURL('**/portal?search=*&patient=patient-2')
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'picked')
    // A date with two readings is compared first, however many patients it finds.
    await page.goto(`${stack.settings.issuerUrl}/portal`)
    const [born = '', day = '', month = '', year = ''] =
      /(0[1-9]|1[0-2])-(Feb|Mar|Apr|May)-(\d{4})/.exec(
        (await page.locator('.prow').allInnerTexts()).join(),
      ) ?? []
    const number = `0${['Jan', 'Feb', 'Mar', 'Apr', 'May'].indexOf(month) + 1}`
    await search.fill(`${day}/${number}/${year}`)
    await search.press('Enter')
    await page.getByText(`Searched for the birth dates ${born} and `).waitFor()
    await page.locator('.prow', { hasText: born }).waitFor()
    await inspectOnEveryScreen(page, 'portal-dates')
    assert.deepEqual(faults, [])
  })

  it('has the same bar on pages with and without patients (PORTAL-14)', async test => {
    const { page } = await open()
    await logIn(page, stack)
    const { db } = stack.store
    const setName = (display_name: string) =>
      db.updateTable('clinician').set({ display_name }).where('username', '=', stack.user.username).execute()
    await setName('Prof. Dr. Wilhelmina Anastasia Feldspar-Quartermaine')
    test.after(() => setName(stack.user.name))
    for (const width of [1280, 1000, 961, 390]) {
      await page.setViewportSize({ width, height: 800 })
      const findPlaces = async (path: string) => {
        await page.goto(stack.settings.issuerUrl + path)
        const places = await page
          .locator('.topbar :is(.logo, .nav a, .devmenu__open, .topbar__open, .who .btn)')
          .evaluateAll(all => all.map(one => ({ ...one.getBoundingClientRect().toJSON() })))
        const main = await page.locator('main').boundingBox()
        return { places, top: main?.y, isSample: await page.getByText('Sample data').isVisible() }
      }
      const [portal, account] = [await findPlaces('/portal'), await findPlaces('/account/sign-ins')]
      assert.deepEqual([portal.isSample, account.isSample], [true, false])
      assert.deepEqual(portal.places, account.places, String(width))
      assert.equal(portal.top, account.top)
    }
  })

  it('works with the keyboard alone', async () => {
    const { page } = await open()
    await page.goto(`${stack.settings.issuerUrl}/portal`)
    await tabTo(page, /^INPUT username$/)
    await page.keyboard.type(stack.user.username)
    await page.keyboard.press('Tab')
    await page.keyboard.type(stack.user.password)
    await page.keyboard.press('Enter')
    await page.waitForURL('**/portal')
    await tabTo(page, /^INPUT search$/)
    await page.keyboard.type('Juniper')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/portal?search=Juniper')
    await tabTo(page, /^A [\s\S]*Juniper[\s\S]*Alban/)
    await page.keyboard.press('Enter')
    await page.waitForURL('**/portal?*patient=*')
    // The focus is at the patient's name.
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'picked')
    // Decision support, which may arrive meanwhile, and the choice of an app come first.
    await tabTo(page, /^INPUT encounterId$/, 6)
    await page.keyboard.press('ArrowUp')
    await tabTo(page, /^BUTTON Launch/, 4)
    await page.keyboard.press('Enter')
    await page.waitForURL(`${stack.settings.appUrl}/s/*`)
    await page.getByRole('heading', { level: 1, name: 'Juniper, Alban' }).waitFor()
  })

  it('begins at the search, to which / leads, and shows no focus that a click did not ask for', async () => {
    const { page } = await open()
    await signIn(page, stack)
    assert.equal(await focused(page), 'INPUT search')
    await page.getByRole('heading', { level: 1 }).click()
    await page.keyboard.press('/')
    assert.equal(await focused(page), 'INPUT search')
    await page.keyboard.type('a/b')
    assert.equal(await page.locator('#search').inputValue(), 'a/b')
    await page.getByRole('link', { name: 'Alabaster, Zoë' }).first().click()
    await page.waitForURL('**/portal?*patient=*')
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'picked')
    assert.equal(await page.locator('#picked').evaluate(name => getComputedStyle(name).outlineStyle), 'none')
  })

  it('keeps the focused element visible', async () => {
    const { page } = await open()
    await signIn(page, stack)
    for (let stop = 0; stop < 12; stop++) {
      await page.keyboard.press('Tab')
      const outline = await page.evaluate(() => {
        const at = document.activeElement
        return at === null ? 'nothing' : getComputedStyle(at).outlineStyle
      })
      assert.equal(outline, 'solid', `stop ${stop}: ${await focused(page)}`)
    }
  })

  it('finds patients by MRN and by names in any order, and explains an empty result', async () => {
    const { page, faults } = await open()
    await signIn(page, stack)
    for (const [text, count] of [
      ['SYN-004127', 1],
      ['patient-1', 1],
      ['4127', 1],
      ['syn 004127', 1],
      ['14031958 juniper', 1],
      ['14-Mar-1958 juniper', 1],
      ['juniper alba', 2],
      ['Alba Juniper', 2],
    ] as const) {
      await page.getByLabel('Find a patient by name').fill(text)
      await page.getByRole('button', { name: 'Search' }).click()
      await page.getByRole('heading', { name: `match${count === 1 ? 'es' : ''} “${text}”` }).waitFor()
      assert.equal(await page.locator('[data-patient-id]').count(), count, text)
    }
    await inspectOnEveryScreen(page, 'portal-search')
    await page.getByRole('link', { name: 'Clear search' }).click()
    await page.getByRole('link', { name: 'Alabaster, Zoë' }).waitFor()
    assert.equal(await page.getByLabel('Find a patient by name').inputValue(), '')
    await page.getByLabel('Find a patient by name').fill('Junpier')
    await page.keyboard.press('Enter')
    const suggestion = page.getByRole('link', { name: 'Juniper', exact: true })
    await suggestion.waitFor()
    await inspectOnEveryScreen(page, 'portal-suggestion')
    await suggestion.click()
    await page.getByRole('heading', { name: '2 patients match “Juniper”' }).waitFor()
    for (const text of ['Nobody', '<script>alert(1)</script>', 'a&b=c', 'a|b', "'; drop table--", '%']) {
      await page.getByLabel('Find a patient by name').fill(text)
      await page.getByRole('button', { name: 'Search' }).click()
      assert.equal(await page.getByLabel('Find a patient by name').inputValue(), text)
      await page.getByRole('heading', { name: /^No patient matches/ }).waitFor()
      assert.equal(await page.locator('[data-patient-id]').count(), 0)
    }
    await expectAccessible(page)
    assert.deepEqual(faults, [])
  })

  it('does not reveal whether the username or the password is wrong, and stays on the form', async () => {
    const { page } = await open()
    await page.goto(`${stack.settings.issuerUrl}/login`)
    await page.getByLabel('Username').fill('clinician')
    await page.getByLabel('Password').fill('wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').getByText('The username or password is incorrect.').waitFor()
    await inspectOnEveryScreen(page, 'login-wrong')
  })
})
