/** Names of apps, patients, users and encounters that try to turn the text around them, on every page. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import type { Resource } from '../src/fhir/index.ts'
import { expectAccessible, useBrowser } from './support/browser.ts'
import { crawl } from './support/crawl.ts'
import { HttpUser } from './support/http-user.ts'
import { type Stack, startStack } from './support/stack.ts'
import { logIn, openPatient } from './support/walk.ts'

const OVERRIDE = '\u202e'
/** It ends with an override, so that everything after it is shown from right to left, and has words that do so themselves. */
const hostile = (name: string) => `${name}\u2067\u202bיעל${OVERRIDE}`
const patient = { reference: 'Patient/hostile', display: hostile('Subject') }

const RESOURCES: readonly Resource[] = [
  {
    resourceType: 'Patient',
    id: 'hostile',
    name: [{ family: hostile('Family'), given: [hostile('Given')], prefix: [hostile('Dr')] }],
    gender: 'female',
    birthDate: '1990-01-01',
    identifier: [{ type: { coding: [{ code: 'MR' }] }, value: hostile('MRN') }],
  },
  {
    resourceType: 'Encounter',
    id: 'hostile',
    status: 'in-progress',
    class: { code: 'AMB', display: hostile('ambulatory') },
    type: [{ text: hostile('Visit') }],
    subject: patient,
    participant: [{ individual: { reference: 'Practitioner/1', display: hostile('Doctor') } }],
    serviceProvider: { display: hostile('Hospital') },
    period: { start: '2026-01-01' },
  },
  {
    resourceType: 'Condition',
    id: 'hostile',
    subject: patient,
    code: { text: hostile('Condition') },
    clinicalStatus: { coding: [{ code: 'active' }] },
  },
]

let stack: Stack
before(async () => {
  stack = await startStack({ env: { SMART_SAMPLE_PATIENTS: '2' }, resources: RESOURCES })
  const { db } = stack.store
  // As if they had been stored before such names were refused.
  const app = { name: hostile('App'), description: hostile('About'), first_party: false }
  await db.updateTable('client').set(app).execute()
  await db
    .updateTable('clinician')
    .set({ display_name: hostile('User'), admin: true })
    .execute()
})
after(() => stack?.close())
const open = useBrowser()

const CONTROL = /(?![\t\n\r])[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u

/** Throws if a page has a control, or a word from right to left that is not isolated. */
function expectIsolated(path: string, body: string): void {
  const elements = body.replace(/<(title|option)\b[^>]*>[^<]*/g, element =>
    element.replace(/\u2068[^\u2068\u2069]*\u2069/g, ''),
  )
  assert.doesNotMatch(elements, CONTROL, path)
  const text = elements
    .replace(/<bdi>[^<]*<\/bdi>/g, '')
    .replace(/<textarea[\s\S]*?<\/textarea>|<[^>]*>/g, '')
  assert.doesNotMatch(text, /[\u0590-\u08ff]/, path)
}

/** The texts of an element in the order in which they are shown on each line. */
async function readShown(page: Page, selector: string): Promise<string> {
  return page.locator(selector).evaluate(element => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT)
    const words: { text: string; left: number; top: number }[] = []
    for (let node = walker.nextNode(); node; node = walker.nextNode())
      for (const found of (node.textContent ?? '').matchAll(/\S+/g)) {
        const range = document.createRange()
        range.setStart(node, found.index)
        range.setEnd(node, found.index + found[0].length)
        const { left, bottom } = range.getBoundingClientRect()
        words.push({ text: found[0], left, top: Math.round(bottom / 8) })
      }
    return words
      .sort((a, b) => a.top - b.top || a.left - b.left)
      .map(({ text }) => text)
      .join(' ')
  })
}

describe('names that contain controls of direction', () => {
  it('change nothing around them on any page of the auth server (HTTP-14)', async () => {
    const { issuerUrl } = stack.settings
    const user = new HttpUser(stack)
    await user.signIn()
    await user.request(`${issuerUrl}/oauth2/authorize?client_id=${encodeURIComponent(hostile('x'))}`)
    const starts = ['/portal?patient=hostile', `/portal?search=${encodeURIComponent(hostile('Family'))}`]
    const bodies = await crawl(
      user,
      starts.map(path => `${issuerUrl}${path}`),
    )
    for (const [url, body] of bodies) expectIsolated(url, body)
    const shown = [...bodies].filter(([, body]) => body.includes('<bdi>יעל</bdi>')).map(([url]) => url)
    for (const path of ['/portal', '/portal?patient=hostile', '/admin/apps', '/admin/clinicians', '/apps'])
      assert.ok(shown.includes(`${issuerUrl}${path}`), `${path} shows a hostile name: ${shown}`)
  })

  it('leave the question of the consent page, the record and the lists in order (HTTP-14)', async () => {
    const { page, faults } = await open()
    await logIn(page, stack)
    await openPatient(page, stack, 'hostile')
    await page.getByLabel('No encounter').check()
    await page.getByRole('button', { name: /^Launch (?!settings)/ }).click()
    await page.waitForURL(/\/oauth2\/consent/)
    assert.equal(await readShown(page, 'h1'), 'Allow App יעל to use this record?')
    expectIsolated('/oauth2/consent', await page.content())
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Allow access' }).click()
    await page.waitForURL(`${stack.settings.appUrl}/s/*`)
    expectIsolated('/s', await page.content())
    assert.match(await readShown(page, 'h1'), /^Family יעל , Given יעל/)
    await page.goto(`${stack.settings.issuerUrl}/manage`)
    const manage = await page.content()
    assert.match(manage, /<bdi>יעל<\/bdi>/)
    expectIsolated('/manage', manage)
    assert.deepEqual(faults, [])
  })
})
