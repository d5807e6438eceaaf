/** The pages for app developers in a real browser: the lab, the registered apps with their code, the activity. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { createAuditor } from '../src/audit/index.ts'
import { seedSampleAccounts } from '../src/auth/index.ts'
import { inspectOnEveryScreen, useBrowser, type WatchedPage } from './support/browser.ts'
import { freePorts } from './support/free-ports.ts'
import { rsaPair } from './support/rsa-pair.ts'
import { type Stack, startStack } from './support/stack.ts'
import { logIn, openDeveloperPage } from './support/walk.ts'

let stack: Stack
before(async () => {
  stack = await startStack()
  await seedSampleAccounts(stack.store)
})
after(() => stack?.close())
const open = useBrowser()

async function enter(options?: Parameters<typeof open>[0]): Promise<WatchedPage> {
  const watched = await open(options)
  await logIn(watched.page, stack)
  return watched
}

const visit = (page: Page, path: string) => page.goto(`${stack.settings.issuerUrl}${path}`)

describe('/lab', () => {
  const readLink = async (page: Page) =>
    new URL((await page.getByRole('link', { name: 'Launch', exact: true }).getAttribute('href')) ?? '')

  it('picks app, user, patient and encounter by name, and the link follows the form (LAB-7)', async () => {
    const { page, faults } = await enter({ permissions: ['clipboard-read', 'clipboard-write'] })
    await visit(page, '/lab')
    await page.getByText('Choose a patient. The link appears here').waitFor()
    const patient = page.getByRole('combobox', { name: 'Patient' })
    await patient.fill('junip')
    await page.getByRole('option', { name: /Juniper, Alba / }).waitFor()
    await inspectOnEveryScreen(page, 'lab-picker')
    await patient.press('Enter')
    await page.getByText('Opens Demo app for Juniper, Alba').waitFor()
    assert.equal((await readLink(page)).searchParams.get('patient'), 'patient-1')
    await page.getByRole('combobox', { name: 'Encounter' }).selectOption({ index: 1 })
    const user = page.getByRole('combobox', { name: 'User' })
    await user.fill('quill')
    await page.getByRole('option', { name: /Priya Quill/ }).click()
    await page.getByText('as Dr. Priya Quill').waitFor()
    await page.getByText('Skip sign-in', { exact: true }).check()
    await page.getByText('FHIR requests', { exact: true }).click()
    await page.getByText('fhir:429', { exact: true }).check()
    await page.getByText('Scopes of the app', { exact: true }).click()
    await page.getByText('patient/Patient.rs', { exact: true }).first().check()
    await page.getByText('Simulates fhir:429').waitFor()
    await page.waitForURL(/scope=patient/)
    const { searchParams } = await readLink(page)
    assert.deepEqual(
      ['patient', 'user', 'skip_login', 'simulate'].map(name => searchParams.get(name)),
      ['patient-1', 'admin', '1', 'fhir:429'],
    )
    assert.match(searchParams.get('encounter') ?? '', /./)
    assert.match(searchParams.get('scope') ?? '', /^patient\/Patient\.rs$/)
    await page.getByRole('button', { name: 'Copy' }).first().click()
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), (await readLink(page)).href)
    await inspectOnEveryScreen(page, 'lab')
    await page.goto((await readLink(page)).href)
    await page.waitForURL(`${stack.settings.appUrl}/**`)
    assert.deepEqual(
      faults.filter(fault => !/status of 502/.test(fault)),
      [],
    )
  })

  it('explains every kind of launch, and launches each (LAB-7)', async () => {
    const { page, faults } = await enter()
    await visit(page, '/lab')
    await page.getByText('Standalone launch', { exact: true }).check()
    await page.getByText('Opens Demo app without a context').waitFor()
    assert.equal(await page.getByRole('combobox', { name: 'Patient' }).isVisible(), false)
    const alone = await readLink(page)
    assert.equal(alone.search, '?kind=standalone')
    await inspectOnEveryScreen(page, 'lab-standalone')
    await page.getByText('EHR launch by a patient', { exact: true }).check()
    const user = page.getByRole('combobox', { name: 'User' })
    await user.fill('alba')
    await page.getByRole('option', { name: /Alba Juniper.*patient/ }).click()
    await page.getByText('for the user’s own record as Alba Juniper').waitFor()
    await page.getByText('Skip sign-in', { exact: true }).check()
    await page.getByText('Skip consent', { exact: true }).check()
    await page.waitForURL(/skip_consent/)
    await page.getByText('without consent').waitFor()
    const own = await readLink(page)
    await page.getByText('Backend service', { exact: true }).check()
    await page.getByText('Choose an app with keys and system/ scopes').waitFor()
    await page.goto(alone.href)
    await page.getByRole('heading', { name: /patient/i, level: 1 }).waitFor()
    await page.goto(own.href)
    await page.waitForURL(`${stack.settings.appUrl}/s/*`)
    await page.getByText('Juniper').first().waitFor()
    assert.deepEqual(faults, [])
  })

  it('works without scripts: a name finds the patient, and a button makes the link (LAB-7)', async () => {
    const { page } = await enter({ javaScriptEnabled: false })
    await visit(page, '/lab')
    await page.getByLabel('Patient', { exact: true }).fill('juniper')
    await page.getByText('Skip sign-in', { exact: true }).check()
    await page.getByRole('button', { name: 'Create link' }).click()
    const link = (await page.getByText('several patients match').isVisible())
      ? page.locator('.lab__result .choice').first()
      : undefined
    await link?.click()
    const { searchParams } = await readLink(page)
    assert.equal(searchParams.get('patient'), 'patient-1')
    assert.equal(searchParams.get('skip_login'), '1')
  })

  it('takes over what was chosen in the portal, also the encounter (LAB-7)', async () => {
    const { page, faults } = await enter()
    await visit(page, '/portal?patient=patient-1')
    const encounter = page.getByRole('group', { name: 'Encounter' }).getByRole('radio').first()
    await encounter.check()
    const id = await encounter.getAttribute('value')
    await page.getByText('More options').click()
    await page.getByLabel('Intent').fill('reconcile')
    await page.getByRole('button', { name: 'Launch settings for developers' }).click()
    await page.waitForURL(/\/lab\?/)
    const { searchParams } = await readLink(page)
    assert.deepEqual(
      ['patient', 'encounter', 'intent'].map(name => searchParams.get(name)),
      ['patient-1', id, 'reconcile'],
    )
    assert.deepEqual(faults, [])
  })
})

describe('/apps', () => {
  const servers: Server[] = []
  after(() => {
    for (const server of servers) server.close()
  })

  /** A server for a page, at every path. */
  async function serve(pages: ReadonlyMap<string, string>): Promise<string> {
    const server = createServer(({ url = '' }, response) => {
      const [path = ''] = url.split('?')
      const code = pages.get(path)
      response.writeHead(code === undefined ? 204 : 200, { 'content-type': 'text/html' }).end(code)
    })
    servers.push(server)
    server.listen(0, 'localhost')
    await once(server, 'listening')
    const address = server.address()
    assert(address !== null && typeof address === 'object')
    return `http://localhost:${address.port}`
  }

  interface NewApp {
    readonly name: string
    readonly redirectUri?: string
    readonly launchUrl?: string
    readonly kind?: string
    readonly jwks?: string
    readonly scope?: string
  }

  /** Registers an app on the page, and returns its code by title. */
  async function register(page: Page, app: NewApp): Promise<ReadonlyMap<string, string>> {
    await visit(page, '/apps/new')
    await page.getByLabel('Name', { exact: true }).fill(app.name)
    await page.getByLabel('Redirect URIs', { exact: true }).fill(app.redirectUri ?? '')
    await page.getByLabel('Launch URL').fill(app.launchUrl ?? '')
    if (app.kind !== undefined) await page.getByText(app.kind, { exact: true }).check()
    if (app.jwks !== undefined) await page.getByLabel('Key set', { exact: true }).fill(app.jwks)
    if (app.scope !== undefined) {
      const boxes = page.locator('input[name="scope"]:checked')
      while ((await boxes.count()) > 0) await boxes.first().uncheck()
      await page.getByLabel('Other scopes').fill(app.scope)
    }
    await page.getByRole('button', { name: 'Register app' }).click()
    await page.getByText('App registered.').waitFor()
    const found = await page
      .locator('details:has(pre)')
      .evaluateAll(all =>
        all.map(one => [one.querySelector('summary')?.textContent, one.querySelector('pre')?.textContent]),
      )
    return new Map(found.map(([title = '', code = '']) => [title ?? '', code ?? '']))
  }

  it('are in the navigation, and each field is checked as it is typed (LAB-8)', async () => {
    const { page, faults } = await enter()
    await visit(page, '/lab')
    await openDeveloperPage(page, 'Registered apps')
    await page.getByRole('link', { name: 'Register an app' }).click()
    const uris = page.getByLabel('Redirect URIs', { exact: true })
    await uris.fill('http://app.example/callback')
    await page.getByText('http://app.example/callback: expected https, http on loopback').waitFor()
    assert.equal(await uris.getAttribute('aria-invalid'), 'true')
    assert.equal(await page.getByText('Enter a name').isVisible(), false)
    await page.getByLabel('Other scopes').fill('patient/Nothing.rs')
    await page.getByText('FHIR R4 has no resource type Nothing').waitFor()
    await page.getByText('More options').click()
    await page.getByLabel('Client id').fill('sallyport-app')
    await page.getByText('The id is taken.').waitFor()
    await inspectOnEveryScreen(page, 'apps-new')
    await uris.fill('http://localhost:3000/callback')
    await page.waitForFunction(() => document.getElementById('redirect_uris-error') === null)
    assert.equal(await uris.getAttribute('aria-invalid'), null)
    assert.deepEqual(faults, [])
  })

  it('end with code that works as it stands: fhirclient and fetch in a page (LAB-8)', async () => {
    const { page, context, faults } = await enter()
    const library = createRequire(import.meta.url).resolve('fhirclient/build/fhir-client.js')
    await context.route('https://cdn.jsdelivr.net/npm/fhirclient@2/build/fhir-client.js', route =>
      route.fulfill({ path: library, contentType: 'text/javascript' }),
    )
    const pages = new Map<string, string>()
    const url = await serve(pages)
    const code = await register(page, {
      name: 'Page',
      redirectUri: `${url}/callback`,
      launchUrl: `${url}/launch`,
    })
    await inspectOnEveryScreen(page, 'apps-code')
    const lab = new URL(
      (await page.getByRole('link', { name: 'Launch in the lab' }).getAttribute('href')) ?? '',
      stack.settings.issuerUrl,
    )
    const client = lab.searchParams.get('client') ?? assert.fail()
    for (const title of ['fhirclient', 'Plain fetch']) {
      for (const path of ['/callback', '/launch']) pages.set(path, code.get(title) ?? assert.fail(title))
      const launch = (query: Record<string, string>) =>
        visit(page, `/lab/launch?${new URLSearchParams({ client, skip_consent: '1', ...query })}`)
      for (const patient of ['patient-1', 'patient-2']) {
        await launch({ patient })
        await page.locator('#out').getByText(`"id": "${patient}"`).waitFor()
        assert.equal(page.url(), `${url}/callback`, 'nothing of the response is left for a new tab')
      }
      await launch({ patient: 'patient-1', simulate: 'authorize:access_denied' })
      await page.locator('#out').getByText('access_denied: ').waitFor()
      await page.evaluate(() => sessionStorage.clear())
      await page.goto(`${url}/callback`)
      await page
        .getByRole('radio', { name: /^Juniper, Alba\s/ })
        .first()
        .check()
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByRole('button', { name: 'Allow access' }).click()
      await page.locator('#out').getByText('"id": "patient-1"').waitFor()
    }
    await visit(page, `/activity?app=${client}&kind=authorize&result=allowed`)
    await page.locator('.event').first().waitFor()
    assert.equal(await page.getByText('not all requested scopes').count(), 0)
    assert.deepEqual(faults, [])
  })

  it('end with a file that reads the conditions too, also without scripts (LAB-8)', async () => {
    const pages = new Map<string, string>()
    const url = await serve(pages)
    const scope = 'launch launch/patient patient/Patient.rs patient/Condition.rs'
    const { page } = await enter()
    const code = await register(page, { name: 'File', redirectUri: `${url}/app.html`, scope })
    const client = (await page.locator('.copy .url').first().textContent()) ?? ''
    const plain = await enter({ javaScriptEnabled: false })
    await visit(plain.page, `/apps/code?client=${client}`)
    const [file] = await Promise.all([
      plain.page.waitForEvent('download'),
      plain.page.getByRole('link', { name: 'Download app.html (Plain fetch)' }).press('Enter'),
    ])
    assert.equal(file.suggestedFilename(), 'app.html')
    const saved = await text(await file.createReadStream())
    assert.equal(saved, code.get('Plain fetch'))
    pages.set('/app.html', saved)
    await page.goto(`${url}/app.html`)
    await page
      .getByRole('radio', { name: /^Juniper, Alba\s/ })
      .first()
      .check()
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('button', { name: 'Allow access' }).click()
    await page.locator('#out').getByText('"resourceType": "Condition"').first().waitFor()
  })

  it('say that fhirclient is loaded from a CDN, if there is none (LAB-8)', async () => {
    const { page, context } = await enter()
    await context.route('https://cdn.jsdelivr.net/**', route => route.abort())
    const pages = new Map<string, string>()
    const url = await serve(pages)
    const code = await register(page, { name: 'Offline', redirectUri: `${url}/callback` })
    await page.getByText('fhirclient', { exact: true }).click()
    await page
      .getByText('It loads the library from a CDN. Without internet access, run npm install')
      .waitFor()
    pages.set('/callback', code.get('fhirclient') ?? assert.fail())
    await page.goto(`${url}/callback`)
    await page.getByText('Cannot load fhirclient.').waitFor()
  })

  it('say what is missing if an app for EHR launches is opened without one (LAB-8)', async t => {
    const { page, context } = await enter()
    const library = createRequire(import.meta.url).resolve('fhirclient/build/fhir-client.js')
    await context.route('https://cdn.jsdelivr.net/**', route =>
      route.fulfill({ path: library, contentType: 'text/javascript' }),
    )
    const pages = new Map<string, string>()
    const url = await serve(pages)
    const scope = 'launch openid fhirUser patient/Patient.rs'
    const code = await register(page, { name: 'EHR', redirectUri: `${url}/index.html`, scope })
    const port = new URL(url).port
    await page
      .getByText(`Save it as index.html, run python3 -m http.server ${port} in its folder`)
      .first()
      .waitFor()
    for (const title of ['fhirclient', 'Plain fetch']) {
      pages.set('/index.html', code.get(title) ?? assert.fail(title))
      const tab = await context.newPage()
      await tab.goto(`${url}/index.html`)
      await tab.getByRole('button', { name: 'Allow access' }).click()
      await tab.getByText('opened without a launch, so it has no patient').waitFor()
    }
    if (spawnSync('python3', ['--version']).status !== 0) return t.diagnostic('NOT RUN: python3 is missing')
    const python = (await register(page, { name: 'Python', redirectUri: `${url}/callback`, scope })).get(
      'Python',
    )
    assert.match(python ?? '', /raise RuntimeError\("The app was opened without a launch/)
    const compiled = spawnSync('python3', ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'], {
      input: python,
    })
    assert.equal(compiled.status, 0, String(compiled.stderr))
  })

  it('end with code that works as it stands: servers with fetch and Python, and a backend service (LAB-8)', async t => {
    const { page } = await enter()
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-code-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const run = (command: string, file: string, text: string, env: Record<string, string> = {}) => {
      writeFileSync(join(folder, file), text)
      const child = spawn(command, [file], { cwd: folder, env: { ...process.env, BROWSER: 'true', ...env } })
      t.after(() => child.kill())
      return child
    }
    const isPython = spawnSync('python3', ['--version']).status === 0
    if (!isPython) t.diagnostic('python3 is not installed: the Python code was NOT run')
    for (const kind of ['With a secret', 'Public']) {
      const programs = [
        ...(kind === 'Public' ? [] : [['Plain fetch', process.execPath, 'app.mjs']]),
        ...(isPython ? [['Python', 'python3', 'app.py']] : []),
      ]
      for (const [title = '', command = '', file = ''] of programs) {
        const [port] = await freePorts(1)
        const code = await register(page, {
          name: `${kind} ${title}`,
          kind,
          redirectUri: `http://localhost:${port}/callback`,
          launchUrl: `http://localhost:${port}/launch`,
        })
        const client = (await page.locator('.copy .url').first().textContent()) ?? ''
        const child = run(command, file, code.get(title) ?? assert.fail(title))
        await once(child.stdout, 'data')
        const query = new URLSearchParams({ client, patient: 'patient-1', skip_consent: '1' })
        await visit(page, `/lab/launch?${query}`)
        await page.getByText('"id": "patient-1"').waitFor()
        child.kill()
      }
    }
    const hasJwt = isPython && spawnSync('python3', ['-c', 'import jwt, cryptography']).status === 0
    if (!hasJwt) t.diagnostic('PyJWT is not installed: the Python code of a backend service was NOT run')
    for (const [alg, { privateKey, publicKey }] of [
      ['RS384', rsaPair()],
      ['ES384', generateKeyPairSync('ec', { namedCurve: 'P-384' })],
    ] as const) {
      const jwks = JSON.stringify({
        keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k1', alg, use: 'sig' }],
      })
      const code = await register(page, {
        name: `Backend ${alg}`,
        kind: 'With keys',
        jwks,
        scope: 'system/Patient.rs',
      })
      assert.match(
        code.get('Python') ?? '',
        /"ES384" if isinstance\(key, EllipticCurvePrivateKey\) else "RS384"/,
      )
      writeFileSync(join(folder, 'private-key.pem'), privateKey.export({ format: 'pem', type: 'pkcs8' }))
      for (const [title = '', command = '', file = ''] of [
        ['Plain fetch', process.execPath, 'backend.mjs'],
        ...(hasJwt ? [['Python', 'python3', 'backend.py']] : []),
      ]) {
        const start = (KID: string) => run(command, file, code.get(title) ?? assert.fail(title), { KID })
        assert.match(await text(start('k1').stdout), /"resourceType": "Bundle"/, title)
        assert.match(await text(start('unknown').stderr), /The client assertion was refused/, title)
      }
    }
  })
})

describe('the error page of an authorization request', () => {
  it('shows what was sent beside what is registered, and links to the app and the event (LAB-10)', async () => {
    const { page } = await enter()
    const query = new URLSearchParams({
      client_id: 'sallyport-app',
      redirect_uri: `${stack.settings.appUrl.replace('http:', 'https:')}/callback/`,
    })
    await visit(page, `/oauth2/authorize?${query}`)
    await page.getByRole('heading', { name: 'The app could not be opened' }).waitFor()
    assert.deepEqual(await page.locator('mark').allTextContents(), ['https://', '/', 'http://'])
    await inspectOnEveryScreen(page, 'authorize-refused')
    await page.getByRole('link', { name: 'See it in Activity' }).click()
    await page.locator('.event--found').getByText('The difference: the scheme').waitFor()
  })
})

describe('/activity', () => {
  it('shows times in the zone of the reader and names it, also in events that arrive later (ACTIVITY-8)', async () => {
    const refuse = (query: string) => fetch(`${stack.settings.issuerUrl}/oauth2/authorize?${query}`)
    await refuse('client_id=nobody')
    const { page, faults } = await enter({ timezoneId: 'Asia/Kolkata' })
    await visit(page, '/activity')
    await page.getByText('Times are in the zone Asia/Calcutta').waitFor()
    const times = page.locator('.event__time time')
    await refuse('client_id=sallyport-app')
    await page.waitForFunction(() => document.querySelectorAll('.event__time time').length > 1)
    const later = times.first()
    const at = new Date((await later.getAttribute('datetime')) ?? '')
    const here = new Date(at.getTime() + 5.5 * 3_600_000).toISOString().slice(11, -1)
    await later.getByText(here).waitFor()
    await inspectOnEveryScreen(page, 'activity')
    assert.deepEqual(faults, [])
  })

  it('lists each problem once with what to do, also without scripts, and links to its launch (ACTIVITY-9)', async () => {
    const fhir = {
      server: 'fhir',
      kind: 'fhir',
      method: 'GET',
      client: 'sallyport-app',
      launch: 'l-1',
    } as const
    const refused = {
      ...fhir,
      allowed: false,
      status: 403,
      request: 'Patient/other-2',
      reason: 'No.',
    } as const
    await createAuditor({ store: stack.store }).record(
      { ...refused, at: Date.now() - 2 },
      { ...refused, at: Date.now() - 1 },
      { ...fhir, allowed: true, status: 400, request: 'Condition?x=…', at: Date.now(), by: 'patient/*.rs' },
    )
    for (const javaScriptEnabled of [true, false]) {
      const { page, faults } = await enter({ javaScriptEnabled })
      await visit(page, '/activity')
      await page.getByRole('link', { name: /^Problems/ }).press('Enter')
      await page.waitForURL('**/activity?result=problems')
      const problem = page.getByRole('listitem').filter({ hasText: 'Patient/other-2' })
      assert.equal(await problem.count(), 1)
      await problem.getByText('2 times').waitFor()
      await problem.getByText('Make the app request a scope that permits this').waitFor()
      if (javaScriptEnabled) await inspectOnEveryScreen(page, 'activity-problems')
      await problem.getByRole('link', { name: 'Show its launch' }).press('Enter')
      await page.waitForURL('**/activity?launch=l-1')
      assert.deepEqual(faults, [])
    }
  })

  it('names UTC without scripts (ACTIVITY-8)', async () => {
    const { page } = await enter({ timezoneId: 'Asia/Kolkata', javaScriptEnabled: false })
    await visit(page, '/activity')
    await page.getByText('Times are in the zone UTC').waitFor()
    const time = page.locator('.event__time time').first()
    assert.equal(await time.textContent(), (await time.getAttribute('datetime'))?.slice(11, -1))
  })
})
