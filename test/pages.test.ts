/** What all pages have in common: their words, red for what cannot be undone, and a sentence in an empty list. */

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { inspectOnEveryScreen, useBrowser } from './support/browser.ts'
import { crawl } from './support/crawl.ts'
import { HttpUser } from './support/http-user.ts'
import { type Stack, startStack } from './support/stack.ts'
import { logIn } from './support/walk.ts'

type Pages = ReadonlyMap<string, string>

const post = (fields: Readonly<Record<string, string>>) =>
  ({ method: 'POST', body: new URLSearchParams(fields) }) as const

let stack: Stack
const pages: Record<'administrator' | 'clinician' | 'patient' | 'nobody', Pages> = {
  administrator: new Map(),
  clinician: new Map(),
  patient: new Map(),
  nobody: new Map(),
}

/** All users have the password of the first. */
async function signIn(username: string): Promise<HttpUser> {
  const user = new HttpUser({ ...stack, user: { ...stack.user, username } })
  await user.signIn()
  return user
}

/** An administrator who added apps and users of each kind, and launched an app. */
async function prepareAdministrator(): Promise<HttpUser> {
  const { issuerUrl } = stack.settings
  const { username } = stack.user
  await stack.store.db.updateTable('clinician').set({ admin: true }).execute()
  const administrator = await signIn(username)
  const add = async (path: string, fields: Readonly<Record<string, string>>) => {
    const response = await administrator.request(`${issuerUrl}/admin/${path}/new`, post(fields))
    assert.ok([200, 303].includes(response.status), `${path}: ${await response.text()}`)
  }
  const { password_hash } = await stack.store.db
    .selectFrom('clinician')
    .select('password_hash')
    .where('username', '=', username)
    .executeTakeFirstOrThrow()
  const person = { displayName: 'Somebody' }
  const addUser = (kind: string, username: string, fhirUser: string) =>
    add('clinicians', { ...person, kind, username, fhirUser, confirmed: fhirUser })
  await addUser('clinician', 'ward', 'Practitioner/practitioner-1')
  await addUser('account', 'patient', 'Patient/patient-1')
  await stack.store.db.updateTable('clinician').set({ password_hash, must_change_password: false }).execute()
  const app = { name: 'Growth', scope: 'launch patient/*.rs', auth_method: 'client_secret' }
  await add('apps', { ...app, redirect_uris: 'https://growth.test/callback' })
  await administrator.launch('patient-1')
  return administrator
}

before(async () => {
  stack = await startStack()
  const { issuerUrl, appUrl } = stack.settings
  const administrator = await prepareAdministrator()
  pages.administrator = await crawl(administrator, [`${issuerUrl}/portal`, `${appUrl}/`])
  pages.clinician = await crawl(await signIn('ward'), [`${issuerUrl}/portal`, `${appUrl}/`])
  pages.patient = await crawl(await signIn('patient'), [`${issuerUrl}/home`])
  pages.nobody = await crawl(new HttpUser(stack), [`${issuerUrl}/portal`, `${appUrl}/`])
})
after(() => stack?.close())

/** The text of a page that a person sees or hears, without code and what others wrote. */
function readText(body: string): string {
  const labels = [...body.matchAll(/ (?:aria-label|placeholder|alt)="([^"]*)"/g)].map(([, text]) => text)
  const text = body
    .replace(/<(code|pre|script|style|textarea|bdi|datalist)\b[\s\S]*?<\/\1>/g, ' ')
    .replace(/<(\w+)[^>]* class="url[^>]*>[^<]*<\/\1>/g, ' ')
    .replace(/<[^>]*>/g, ' ')
  return `${text} ${labels.join(' ')}`.replace(/\s+/g, ' ')
}

/** OAuth terms that app developers and administrators look for. */
const TERMS =
  /client (id|secret|credentials|authentication)|(public|confidential) client|test login|openid-client|smart\.login/gi

const openBrowser = useBrowser()

describe('in a browser', () => {
  it('the audit trail shows times in the zone of the reader, and names it', async () => {
    const { page, faults } = await openBrowser({ timezoneId: 'Asia/Kolkata' })
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/admin/audit`)
    const time = page.locator('th .sub time').first()
    const at = new Date((await time.getAttribute('datetime')) ?? '')
    const here = new Date(at.getTime() + 5.5 * 3_600_000).toISOString().slice(11, 19)
    assert.match((await time.textContent()) ?? '', new RegExp(`^${here} IST$`))
    await inspectOnEveryScreen(page, 'admin-audit')
    await page
      .getByRole('link', { name: /^Details of record/ })
      .first()
      .click()
    assert.match((await page.locator('dd time').first().textContent()) ?? '', / IST$/)
    await inspectOnEveryScreen(page, 'admin-audit-record')
    assert.deepEqual(faults, [])
  })
})

describe('every page', () => {
  it('was opened', () => {
    const expected: Record<keyof typeof pages, readonly string[]> = {
      administrator: ['/portal', '/manage', '/admin/apps/new', '/admin/audit', '/lab', '/s/'],
      clinician: ['/portal', '/manage', '/account', '/account/sign-ins', '/activity'],
      patient: ['/home', '/manage', '/account/access-log', '/account', '/account/sign-ins'],
      nobody: ['/login', '/'],
    }
    for (const [who, paths] of Object.entries(expected))
      for (const path of paths)
        assert.ok(
          [...pages[who as keyof typeof pages].keys()].some(url => new URL(url).pathname.startsWith(path)),
          `${who}: ${path}`,
        )
  })

  it('has one word for one thing: app, user, account, sign in', () => {
    for (const [who, found] of Object.entries(pages))
      for (const [url, body] of found) {
        const text = readText(body).replace(TERMS, '')
        assert.doesNotMatch(
          text,
          /.{0,40}\b(clients?|logins?|log(s|ged)? ?(in|out)|logouts?)\b/i,
          `${who}: ${url}`,
        )
        if (who === 'patient') assert.doesNotMatch(text, /.{0,40}\b(clinicians?|practitioners?)\b/i, url)
      }
  })

  it('has a red button for what ends or removes something, and for nothing else', () => {
    const ENDS = /^(End|Remove|Revoke|Withdraw|Disable|Delete|Reset|Rotate secret|Unlink|Switch off)\b/
    const reds = new Set<string>()
    for (const [url, body] of [...pages.administrator, ...pages.clinician, ...pages.patient])
      for (const [, , kind = '', content = ''] of body.matchAll(
        /<(a|button) [^>]*?class="btn([^"]*)"[^>]*>([\s\S]*?)<\/\1>/g,
      )) {
        // Whoever leaves can come back: the top bar has no red button.
        if (kind.includes('btn--text')) continue
        const text = content.replace(/<[^>]*>/g, '').trim()
        const isRed = kind.includes('btn--danger')
        assert.equal(isRed, ENDS.test(text), `${url}: ${text}`)
        if (isRed) reds.add(text)
      }
    assert.ok(reds.size > 8, [...reds].join())
  })
})

describe('an installation without data', () => {
  let empty: Stack
  let found: Pages
  before(async () => {
    empty = await startStack({ env: { SMART_SAMPLE_PATIENTS: '0' } })
    await empty.store.db.deleteFrom('client').execute()
    await empty.store.db.updateTable('clinician').set({ admin: true }).execute()
    const user = new HttpUser(empty)
    await user.signIn()
    const { issuerUrl, appUrl } = empty.settings
    const [{ id } = { id: '' }] = await empty.store.db.selectFrom('clinician').select('id').execute()
    found = await crawl(
      user,
      [
        '/portal',
        '/portal?search=nobody',
        '/apps?search=nothing',
        '/admin/apps?search=nothing',
        // There are more lists of users than are opened of a kind.
        '/admin/clinicians?state=disabled',
      ]
        .map(path => `${issuerUrl}${path}`)
        .concat(`${appUrl}/`, `${issuerUrl}/admin/clinicians/${id}`),
    )
  })
  after(() => empty?.close())

  it('has no list or table without content on any page', () => {
    for (const [url, body] of found) {
      const elements = body.replace(/<(title|script|style)\b[\s\S]*?<\/\1>/g, '')
      assert.doesNotMatch(elements, /<(tbody|ul|ol|dl|nav|select|section)\b[^>]*>\s*<\/\1>/, url)
      assert.doesNotMatch(elements, /<div class="(choices|card)[^"]*">\s*<\/div>/, url)
      for (const [, text = ''] of elements.matchAll(/<div class="empty">[\s\S]*?<p>([\s\S]*?)<\/p>/g))
        assert.match(text, /^[A-Z].{20,}\.$/, url)
    }
  })

  const EMPTY: Readonly<Record<string, RegExp>> = {
    '/portal': /No patients\..*import/s,
    '/portal?search=nobody': /No patient matches/,
    '/manage': /No app has access\..*after you launch it/s,
    '/activity?result=refused': /No matching events/,
    '/activity?result=problems': /No problems\..*No request that/s,
    '/apps': /No apps yet\..*Register/s,
    '/apps?search=nothing': /No app found/,
    '/account/factors': /Two-step sign-in is off\./,
    '/admin/apps': /No apps yet\..*register/s,
    '/admin/apps?search=nothing': /No app found/,
    '/admin/apps?state=unverified': /No unverified apps\..*registers itself/s,
    '/admin/apps?state=disabled': /No disabled apps\..*disables/s,
    '/admin/clinicians?state=disabled': /No disabled users\..*disables/s,
    '/admin/clinicians/':
      /No app has access now\..*No account of an identity provider|No account of an identity provider.*No app has access now\./s,
    '/admin/providers': /No sign-in providers/,
    '/admin/audit?kind=login&amp;result=refused': /No matching records/,
  }
  it('says what would be in an empty list, and how it gets there', () => {
    const { issuerUrl } = empty.settings
    for (const [path, text] of Object.entries(EMPTY)) {
      const wanted = `${issuerUrl}${path.replaceAll('&amp;', '&')}`
      const [, body = 'not opened'] =
        [...found].find(([url]) =>
          path.endsWith('/')
            ? url.startsWith(wanted) && !/\/[a-z-]+$/.test(url.slice(wanted.length))
            : url === wanted,
        ) ?? []
      assert.match(body, text, path)
    }
  })
})
