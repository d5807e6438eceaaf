import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { createAuditor, findRecords } from '../../audit/index.ts'
import { isFailure } from '../../core/index.ts'
import { NO_CONTROLS } from '../base/context.ts'
import { readForm } from '../testing/read-form.ts'
import { readRedirect, TestAuthServer } from '../testing/test-auth-server.ts'
import type { TestBrowser } from '../testing/test-browser.ts'
import { patient } from '../testing/test-fhir-server.ts'
import { openTestStore } from '../testing/test-store.ts'
import { checkPolicy } from './server/policy.ts'

describe('/admin', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let admin: TestBrowser
  before(async () => {
    const store = await open()
    auth = await TestAuthServer.open(store, { audit: createAuditor({ store }) })
    await auth.addUser('ada', { admin: true })
    admin = await auth.logIn('ada')
  })

  const findLastAction = async () =>
    (await findRecords(auth.store, { events: [{ kind: 'admin' }], limit: 1 }))[0]
  /** Opens the page of an action, and sends its form. */
  const performAction = async (path: string, form: Readonly<Record<string, string>> = {}) => {
    assert.equal((await admin.get(path)).statusCode, 200, path)
    return admin.post(path, form)
  }
  const findId = async (username: string) =>
    (
      await auth.store.db
        .selectFrom('clinician')
        .select('id')
        .where('username', '=', username)
        .executeTakeFirst()
    )?.id ?? ''

  it('returns to the page after the sign-in (ADMIN-20)', async () => {
    const browser = auth.openBrowser()
    const response = await browser.get('/admin/audit?kind=login')
    assert.equal(response.headers.location, '/login')
    assert.equal((await browser.login('ada')).headers.location, '/admin/audit?kind=login')
    assert.equal((await browser.login('ada')).headers.location, '/portal')
  })

  it('returns to no other page, whoever set the cookie (ADMIN-20)', async () => {
    for (const path of [
      '//evil.test/admin',
      'https://evil.test/admin',
      '/administrators',
      '/admin/../portal',
    ]) {
      const browser = auth.openBrowser()
      browser.cookies.set('sallyport-return', encodeURIComponent(path))
      assert.equal((await browser.login('ada')).headers.location, '/portal', path)
    }
  })

  it('is linked in the top bar for administrators only (ADMIN-20)', async () => {
    assert.match((await admin.get('/manage')).body, /href="\/admin"/)
    assert.doesNotMatch((await (await auth.logIn()).get('/manage')).body, /href="\/admin"/)
  })

  it('fills in the username for another sign-in, and returns to the page (ADMIN-22)', async () => {
    const browser = await auth.logIn('ada')
    const page = await browser.get((await browser.get('/admin/sign-in')).headers.location ?? '')
    assert.match(page.body, /Sign in again to continue[\s\S]*name="username"[^>]* value="ada"/)
    assert.equal((await browser.login('ada')).headers.location, '/admin/signed-in')
  })

  it('shows the state of the servers (ADMIN-24)', async () => {
    const { body } = await admin.get('/admin/system')
    assert.match(body, /Auth server[\s\S]*Ready[\s\S]*database, signing key/)
    assert.match(body, /FHIR server[\s\S]*No response/)
  })

  it('shows the profile of the upstream', async () => {
    const checks = [{ name: 'upstream', ok: true, note: 'profile hapi: recognized by a header' }]
    const server = await TestAuthServer.open(await open(), { fetch: async () => Response.json({ checks }) })
    await server.addUser('ada', { admin: true })
    const { body } = await (await server.logIn('ada')).get('/admin/system')
    assert.match(body, /FHIR server[\s\S]*Ready[\s\S]*upstream \(profile hapi: recognized by a header\)/)
  })

  it('reloads the settings after a confirmation (ADMIN-24)', async () => {
    assert.match((await admin.get('/admin/reload')).body, /Reload the settings\?/)
    assert.match(
      (await admin.post('/admin/reload', {})).body,
      /The settings are reloaded[\s\S]*Nothing changed\./,
    )
    assert.equal((await findLastAction())?.request, 'settings reload')
  })

  it('names what a reload changed, and what needs a restart (ADMIN-24)', async () => {
    const changes = [['sign-in provider staff: added'], []]
    const reload = async () => ({ changed: changes.shift() ?? [], needRestart: ['smart.x'] })
    const server = await TestAuthServer.open(await open(), { controls: { ...NO_CONTROLS, reload } })
    await server.addUser('ada', { admin: true })
    const browser = await server.logIn('ada')
    assert.match(
      (await browser.post('/admin/reload', {})).body,
      /In effect now:[\s\S]*sign-in provider staff: added[\s\S]*only after a restart:[\s\S]*smart\.x/,
    )
    assert.match(
      (await browser.post('/admin/reload', {})).body,
      /Nothing has changed that takes effect without a restart\./,
    )
  })

  describe('an action that gives access', () => {
    it('needs a recent sign-in, also if it adds something (ADMIN-22)', async () => {
      const browser = await auth.logIn('ada')
      auth.time.now += 301_000
      const forms: readonly (readonly [path: string, form: Readonly<Record<string, string>>])[] = [
        [
          '/admin/apps/new',
          {
            client_id: 'own',
            name: 'Own',
            auth_method: 'none',
            scope: 'launch user/*.cruds',
            redirect_uris: 'https://own.test/cb',
            first_party: '1',
          },
        ],
        [
          '/admin/clinicians/new',
          { kind: 'clinician', username: 'eve', displayName: 'Eve', fhirUser: 'x', password: '1' },
        ],
      ]
      for (const [path, form] of forms) {
        assert.equal((await browser.get(path)).headers.location, '/login?prompt=login')
        const late = await browser.post(path, form)
        assert.equal(late.statusCode, 403)
        assert.match(late.body, /<h1>Sign in again</)
        for (const [name, value] of Object.entries(form)) assert.equal(readForm(late.body).get(name), value)
      }
      const { db } = auth.store
      const added = [
        ...(await db.selectFrom('client').select('client_id').where('client_id', '=', 'own').execute()),
        ...(await db.selectFrom('clinician').select('id').where('username', '=', 'eve').execute()),
      ]
      assert.deepEqual(added, [])
    })

    it('needs a recent sign-in, and loses nothing (ADMIN-22)', async () => {
      const browser = await auth.logIn('ada')
      auth.time.now += 301_000
      assert.equal((await browser.get('/admin/keys')).statusCode, 200)
      assert.equal((await browser.get('/admin/keys/rotate')).headers.location, '/login?prompt=login')
      assert.equal((await browser.login('ada')).headers.location, '/admin/keys/rotate')
      auth.time.now += 301_000
      const form = {
        name: 'Growth',
        redirect_uris: 'https://growth.test/cb',
        auth_method: 'client_secret',
        new_secret: '1',
      }
      await auth.addClient({ client_id: 'growth', auth_method: 'client_secret' })
      const late = await browser.post('/admin/apps/growth/edit', { ...form, scope: 'launch' })
      assert.equal(late.statusCode, 403)
      assert.equal(readForm(late.body).get('redirect_uris'), 'https://growth.test/cb')
      await browser.login('ada')
      const page = await browser.post('/admin/apps/growth/edit', readForm(late.body).toString())
      assert.match(page.body, /Client secret of growth/)
      admin = browser
    })
  })

  it('rotates and withdraws keys (ADMIN-24)', async () => {
    assert.equal((await performAction('/admin/keys/rotate')).headers.location, '/admin/keys?done=rotated')
    assert.equal((await findLastAction())?.request, 'keys rotate')
    const kids = [...(await admin.get('/admin/keys')).body.matchAll(/keys\/([^/"]+)\/withdraw/g)].map(
      ([, kid]) => kid,
    )
    assert.equal(kids.length, 2)
    await performAction(`/admin/keys/${kids[0]}/withdraw`)
    assert.equal((await admin.get(`/admin/keys/${kids[0]}/withdraw`)).statusCode, 404)
  })

  it('registers, approves, disables and removes apps, and shows a secret once (ADMIN-24)', async () => {
    const form = {
      client_id: 'chart',
      name: 'Chart',
      redirect_uris: 'https://chart.test/cb',
      auth_method: 'client_secret',
      scope: 'launch launch/ecounter',
    }
    const faulty = await admin.post('/admin/apps/new', { ...form, redirect_uris: 'ftp://chart.test' })
    assert.match(faulty.body, /id="redirect_uris-error"/)
    const secret =
      /url--block">([^<]+)</.exec((await performAction('/admin/apps/new', form)).body)?.[1] ?? 'none'
    const page = (await admin.get('/admin/apps/chart')).body
    assert.match(page, /Chart[\s\S]*Active/)
    assert.match(page, /launch\/ecounter is never granted, did you mean launch\/encounter\?</)
    assert.ok(!page.includes(secret))
    const rotated = (await performAction('/admin/apps/chart/rotate-secret')).body
    assert.match(rotated, /Client secret of chart/)
    assert.ok(!rotated.includes(secret))
    await performAction('/admin/apps/chart/disable')
    assert.match((await admin.get('/admin/apps?search=CHART')).body, /Disabled/)
    const list = async (state: string) =>
      (await admin.get(`/admin/apps?state=${state}`)).body.includes('/admin/apps/chart')
    assert.deepEqual(
      [await list('all'), await list('disabled'), await list('unverified')],
      [true, true, false],
    )
    await performAction('/admin/apps/chart/enable')
    await performAction('/admin/apps/chart/approve')
    assert.equal(
      (await performAction('/admin/apps/chart/remove')).headers.location,
      '/admin/apps?done=removed',
    )
    assert.equal((await admin.get('/admin/apps/chart')).statusCode, 404)
    assert.equal((await findLastAction())?.request, 'client remove chart')
  })

  it('adds, changes, links and disables users, and makes administrators (ADMIN-24)', async () => {
    const form = {
      kind: 'clinician',
      username: 'grace',
      displayName: 'Dr. Grace',
      fhirUser: 'practitioner-9',
      password: '1',
      confirmed: 'Practitioner/practitioner-9',
    }
    assert.match(
      (await admin.post('/admin/clinicians/new', { ...form, fhirUser: 'Patient/1' })).body,
      /not added/,
    )
    const password =
      /url--block">([^<]+)</.exec((await performAction('/admin/clinicians/new', form)).body)?.[1] ?? ''
    const grace = auth.openBrowser()
    assert.equal((await grace.login('grace', password)).headers.location, '/login/new-password')
    const chosen = { next: 'correct horse', again: 'correct horse' }
    assert.equal((await grace.post('/login/new-password', chosen)).headers.location, '/portal')
    const path = `/admin/clinicians/${await findId('grace')}`
    await admin.post(path, { displayName: 'Dr. Grace Hopper', fhirUser: 'Practitioner/practitioner-9' })
    await performAction(`${path}/link`, { issuer: 'https://idp.test', subject: 'g-1' })
    await performAction(`${path}/make-administrator`)
    const page = (await admin.get(path)).body
    assert.match(page, /Dr\. Grace Hopper[\s\S]*Administrator[\s\S]*https:\/\/idp\.test/)
    assert.equal((await grace.get('/admin')).statusCode, 200)
    await performAction(`${path}/remove-administrator`)
    const record = (await admin.get(`/admin/audit/${(await findLastAction())?.id}`)).body
    assert.match(record, /Administrator<\/th><td[^>]*>Yes<\/td><td[^>]*>No</)
    assert.equal((await grace.get('/admin')).statusCode, 403)
    await performAction(`${path}/unlink`, { issuer: 'https://idp.test', subject: 'g-1' })
    await performAction(`${path}/end-sessions`)
    assert.equal((await grace.get('/admin')).headers.location, '/login')
    assert.match(
      (await performAction(`${path}/reset-password`, { password: '1' })).body,
      /New password of grace/,
    )
    const link = (await performAction(`${path}/reset-password`, { password: 'link' })).body
    assert.match(link, /Activation link of grace[\s\S]*\/login\/activate#[\w-]{43}/)
    assert.match((await admin.get(path)).body, /Not chosen yet\. The activation link works until/)
    await performAction(`${path}/disable`)
    assert.match((await admin.get('/admin/clinicians?search=grace')).body, /Disabled/)
    await performAction(`${path}/enable`)
  })

  it('shows and changes the related persons of an account, and warns of those that the FHIR server does not have (ADMIN-24)', async () => {
    const form = { kind: 'account', username: 'tove', displayName: 'Tove', fhirUser: 'Patient/juniper' }
    await performAction('/admin/clinicians/new', {
      ...form,
      relatedPersons: 'RelatedPerson/r1\r\nr2',
      confirmed: 'Patient/juniper RelatedPerson/r1 RelatedPerson/r2',
    })
    const path = `/admin/clinicians/${await findId('tove')}`
    const { body } = await admin.get(`${path}?check=1`)
    assert.match(body, /RelatedPerson\/r1\nRelatedPerson\/r2<\/textarea>/)
    assert.match(body, /The FHIR server has no RelatedPerson\/r1, RelatedPerson\/r2\./)
    assert.match(
      body,
      /Opens the records of:[\s\S]*Juniper[^<]*<\/bdi>, born 14-Mar-1958 <code>Patient\/juniper<\/code>/,
    )
    const many = Array.from({ length: 51 }, (_, at) => `r${at}`).join(' ')
    assert.match(
      (await admin.post(path, { ...form, relatedPersons: many })).body,
      /at most 50 RelatedPersons/,
    )
    await admin.post(path, { ...form, relatedPersons: '' })
    assert.doesNotMatch((await admin.get(`${path}?check=1`)).body, /RelatedPerson\/r|The FHIR server has no/)
    const actions = await findRecords(auth.store, { events: [{ kind: 'admin' }], limit: 100 })
    const record = actions.find(({ request }) => request === 'account set tove')
    assert.deepEqual(JSON.parse(record?.details ?? '').after, { relatedPersons: [] })
    const nobody = { ...form, fhirUser: 'Patient/nobody', confirmed: 'Patient/nobody', relatedPersons: '' }
    await admin.post(path, nobody)
    assert.match(
      (await admin.get(`${path}?check=1`)).body,
      /alert--warn[\s\S]*has no Patient\/nobody[\s\S]*it gives access to no record/,
    )
    await auth.addUser('locum', { fhir_user_id: 'nobody' })
    const locum = (await admin.get(`/admin/clinicians/${await findId('locum')}`)).body
    assert.match(locum, /has no Practitioner\/nobody[\s\S]*All other access works/)
    assert.doesNotMatch(locum, /gives access to no record,/)
  })

  it('removes a user after a confirmation, but not oneself (ADMIN-24)', async () => {
    await auth.addUser('leaver')
    const path = `/admin/clinicians/${await findId('leaver')}`
    const leaver = await auth.logIn('leaver')
    assert.match((await admin.get(path)).body, /data-label="Address">127\.0\.0\.1</)
    assert.match((await admin.get(`${path}/remove`)).body, /<dt>Username<\/dt><dd><code>leaver<\/code>/)
    assert.equal((await performAction(`${path}/remove`)).headers.location, '/admin/clinicians?done=removed')
    assert.match((await admin.get('/admin/clinicians?done=removed')).body, /The user is removed\./)
    assert.equal((await admin.get(path)).statusCode, 404)
    assert.equal((await leaver.get('/portal')).headers.location, '/login')
    const own = (await admin.get(`/admin/clinicians/${await findId('ada')}`)).body
    assert.doesNotMatch(own, /\/remove"/)
  })

  it('shows and revokes the access that users gave an app (ADMIN-24)', async () => {
    await auth.exchange(await auth.getCode(await auth.logIn()))
    const page = (await admin.get('/admin/apps/sallyport-app')).body
    const path = /href="(\/admin\/grants\/[^"]+)"/.exec(page)?.[1] ?? ''
    assert.match(page, /href="\/admin\/apps\/sallyport-app">Demo app</)
    assert.match((await admin.get('/admin/apps/sallyport-app/disable')).body, /<code>sallyport-app<\/code>/)
    const question = (await admin.get(path)).body
    assert.match(question, /Demo app <code>sallyport-app<\/code>[\s\S]*<code>clinician<\/code>/)
    assert.match(question, /<dt>Patient<\/dt><dd>Juniper, Alba <code>juniper<\/code>/)
    assert.equal((await performAction(path)).headers.location, '/admin/apps/sallyport-app?done=revoked')
    assert.match(
      (await admin.get('/admin/apps/sallyport-app?done=revoked')).body,
      /revoked[\s\S]*No user gives this app access at present/,
    )
    assert.equal((await admin.get(path)).statusCode, 404)
  })

  it('shows the same apps with access as the user sees, until their last tokens expire (REVOKE-3)', async () => {
    const own = await TestAuthServer.open(await open())
    await own.addUser('ada', { admin: true })
    await own.addClient({ client_id: 'brief', name: 'Brief', scope: 'launch patient/*.rs' })
    await own.addClient({
      client_id: 'lasting',
      name: 'Lasting',
      scope: 'launch offline_access patient/*.rs',
    })
    const [user, officer] = [await own.logIn(), await own.logIn('ada')]
    for (const client_id of ['brief', 'lasting']) {
      const app = { client_id, redirect_uri: `https://${client_id}.example/callback` }
      const scope = client_id === 'brief' ? 'launch patient/*.rs' : 'launch offline_access patient/*.rs'
      assert.equal((await own.exchange(await own.getCode(user, { ...app, scope }), app)).statusCode, 200)
    }
    const [{ id } = { id: '' }] = await own.store.db
      .selectFrom('clinician')
      .select('id')
      .where('username', '=', 'clinician')
      .execute()
    const look = async () => {
      const pages = [await user.get('/manage'), await officer.get(`/admin/clinicians/${id}`)]
      return pages.map(({ body }) => ['Brief', 'Lasting'].filter(name => body.includes(name)))
    }
    assert.deepEqual(await look(), Array(2).fill(['Brief', 'Lasting']))
    own.time.now += own.settings.accessTokenTtlSeconds * 1000
    assert.deepEqual(await look(), Array(2).fill(['Lasting']))
  })

  it('lists who has access now, by user, app and patient, and says what ends with an app or a user (REVOKE-3)', async () => {
    const own = await TestAuthServer.open(await open())
    await own.addUser('ada', { admin: true })
    await own.addUser('bea', { display_name: 'Dr. Beatrix Unger' })
    await own.addClient({ client_id: 'growth', name: 'Growth', scope: 'launch offline_access patient/*.rs' })
    await own.addClient({ client_id: 'ward', name: 'Ward list', scope: 'launch offline_access user/*.rs' })
    const officer = await own.logIn('ada')
    const grant = async (username: string, client_id: string, patientId: string) => {
      own.time.now += 1
      const app = { client_id, redirect_uri: `https://${client_id}.example/callback` }
      const browser = await own.logIn(username)
      const launch = await own.launch(browser, { clientId: client_id, patientId })
      const scope = `launch offline_access ${client_id === 'ward' ? 'user' : 'patient'}/*.rs`
      const { code = '' } = readRedirect(await own.authorize(browser, { ...app, launch, scope }))
      return (await own.exchange(code, app)).json()
    }
    await grant('clinician', 'growth', 'juniper')
    await grant('bea', 'growth', 'ashlar')
    const ward = await grant('bea', 'ward', 'ashlar')
    const list = async (query: string) => {
      const { body } = await officer.get(`/admin/access${query}`)
      return [...body.matchAll(/sr"> access of ([^<]*?) for (\w+)/g)].map(([, app, user]) => `${app} ${user}`)
    }
    const all = ['Ward list bea', 'Growth bea', 'Growth clinician']
    assert.deepEqual(await list(''), all)
    assert.deepEqual(await list('?user=BEA'), all.slice(0, 2))
    assert.deepEqual(await list('?user=Unger&app=growth'), ['Growth bea'])
    assert.deepEqual(await list('?app=Growth'), all.slice(1))
    assert.deepEqual(await list('?patient=Patient/juniper'), ['Growth clinician'])
    assert.deepEqual(await list('?patient=any'), ['Ward list bea'])
    assert.deepEqual(await list('?user=nobody'), [])
    assert.match(
      (await officer.get('/admin/access?patient=juniper')).body,
      /every patient whom a user may see/,
    )
    assert.match(
      (await officer.get('/admin/access')).body,
      /<code>ashlar<\/code>(?:<\/span>)?<span class="sub">and any other</,
    )
    assert.match((await officer.get('/admin/access')).body, /<th[^>]*>Granted</)
    const unknown: readonly (readonly [string, RegExp])[] = [
      ['?user=nobody', /No user is known as nobody\./],
      ['?app=nothing', /No app is known as nothing\./],
      ['?patient=nobody', /No patient is known as nobody\./],
      ['?patient=no%20id', /No patient is known as no id\./],
    ]
    for (const [query, text] of unknown) {
      const { body } = await officer.get(`/admin/access${query}`)
      assert.match(body, text)
      assert.doesNotMatch(body, /No app has access/)
    }
    for (const query of ['?user=ada', '?app=sallyport-app', '?user=clinician&patient=ashlar'])
      assert.match((await officer.get(`/admin/access${query}`)).body, /No app has access/)

    assert.deepEqual(await list('?patient=Alba%20Juniper'), ['Growth clinician'])
    assert.match(
      (await officer.get('/admin/access?patient=Alba%20Juniper')).body,
      /Patient: <a href="\/admin\/access\?patient=Patient%2Fjuniper">Juniper, Alba/,
    )
    await own.addClient({
      client_id: 'nightly',
      name: 'Nightly report',
      auth_method: 'private_key_jwt',
      scope: 'system/Observation.rs',
    })
    const withService = (await officer.get('/admin/access?patient=juniper')).body
    assert.match(withService, /Nightly report<[\s\S]*Reads measurements[^<]*, of every patient/)
    assert.doesNotMatch((await officer.get('/admin/access?user=bea')).body, /Nightly report<\/a>/)
    await own.addClient({ client_id: 'tickets', name: 'Tickets', scope: 'sallyport/admin' })
    const tickets = await officer.get('/admin/apps/tickets')
    assert.match(tickets.body, /Administers this server: users, apps, keys, audit; reads no record/)
    assert.doesNotMatch(tickets.body, /Users who gave access/)
    const csv = (await officer.get('/admin/access/export.csv?app=growth&patient=Juniper')).body.split('\r\n')
    assert.equal(csv.length, 3)
    assert.match(csv[1] ?? '', /,growth,Growth,clinician,.*,juniper,/)
    const exported = await officer.get('/admin/access/export.csv')
    assert.match(exported.body, /,nightly,Nightly report,,,,true,system\/Observation\.rs,/)
    assert.equal((await officer.get('/admin/access/export.csv?user=nobody')).statusCode, 400)

    const { id } = await own.store.db
      .selectFrom('clinician')
      .select('id')
      .where('username', '=', 'bea')
      .executeTakeFirstOrThrow()
    assert.match(
      (await officer.get('/admin/apps/growth/disable')).body,
      /Access that ends<\/dt><dd>2 grants of 2 users</,
    )
    assert.match(
      (await officer.get(`/admin/clinicians/${id}/remove`)).body,
      /Sign-ins that end<\/dt><dd>2<[\s\S]*Access that ends<\/dt><dd>2 grants of 2 apps</,
    )
    assert.match((await officer.get('/admin/apps/sallyport-app/disable')).body, /None: no app has access now/)
    const path =
      /href="(\/admin\/grants\/[^"]+)"/.exec((await officer.get('/admin/access?app=ward')).body)?.[1] ?? ''
    assert.match(path, /list=%3Fapp%3Dward$/)
    const question = (await officer.get(path)).body
    assert.match(question, /name="list" value="\?app=ward"[\s\S]*href="\/admin\/access\?app=ward">Cancel/)
    assert.match(
      question,
      /Ward list <code>ward<[\s\S]*Dr\. Beatrix Unger <code>bea<[\s\S]*, and any other whom the user may see/,
    )
    const revoked = await officer.post(path.split('?')[0] ?? '', { list: '?app=ward' })
    assert.equal(revoked.headers.location, '/admin/access?app=ward&done=revoked')
    assert.match((await officer.get('/admin/access?app=ward&done=revoked')).body, /The access is revoked\./)
    assert.deepEqual(await list(''), all.slice(1))
    const refused = await own.refresh(ward.refresh_token, { client_id: 'ward' })
    assert.equal(refused.json().error, 'invalid_grant')
  })

  it('ends one sign-in of another user after a confirmation that names it (ADMIN-3)', async () => {
    await auth.addUser('two')
    const [kept, lost] = [await auth.logIn('two'), await auth.logIn('two')]
    const path = `/admin/clinicians/${await findId('two')}`
    const rows = await auth.store.db.selectFrom('login').select('id_hash').execute()
    const links = [...(await admin.get(path)).body.matchAll(/end-sign-in\?signIn=([\w-]+)/g)].map(
      ([, id]) => id,
    )
    assert.equal(links.length, 2)
    assert.ok(links.every(id => rows.some(row => row.id_hash === id)))
    const [signIn = ''] = links
    assert.match(
      (await admin.get(`${path}/end-sign-in?signIn=${signIn}`)).body,
      /<dt>Browser<\/dt>[\s\S]*<dt>Address/,
    )
    assert.equal((await admin.post(`${path}/end-sign-in`, { signIn })).headers.location, `${path}?done=saved`)
    assert.equal((await findLastAction())?.request, 'clinician end-sign-in two')
    const states = await Promise.all(
      [kept, lost].map(async browser => (await browser.get('/portal')).statusCode),
    )
    assert.deepEqual(states.toSorted(), [200, 302])
    assert.equal((await admin.get(`${path}/end-sign-in?signIn=${signIn}`)).statusCode, 404)
    const own = `/admin/clinicians/${await findId('ada')}`
    const { id_hash } = await auth.store.db
      .selectFrom('login')
      .select('id_hash')
      .where('clinician_id', '=', await findId('ada'))
      .executeTakeFirstOrThrow()
    assert.equal(
      (await admin.post(`${path}/end-sign-in`, { signIn: id_hash })).statusCode,
      404,
      'of another user',
    )
    assert.match((await admin.get(own)).body, /This browser/)
  })

  it('lists users without a second factor, and warns of an added user whom the FHIR server does not have (ADMIN-21)', async () => {
    await auth.addUser('plain')
    await auth.addUser('strong')
    const factor = { kind: 'totp', name: 'Phone', created_at: 1 } as const
    await auth.store.db
      .insertInto('factor')
      .values({ ...factor, clinician_id: await findId('strong') })
      .execute()
    const { body } = await admin.get('/admin/clinicians?state=without-second-factor')
    assert.match(body, /<code>plain<\/code>/)
    assert.doesNotMatch(body, /<code>strong<\/code>/)
    const form = {
      kind: 'clinician',
      username: 'newcomer',
      displayName: 'New',
      fhirUser: 'Practitioner/nobody',
      confirmed: 'Practitioner/nobody',
    }
    const added = await admin.post('/admin/clinicians/new', { ...form, password: '1' })
    assert.match(added.body, /New password of newcomer/)
    assert.match(added.body, /The FHIR server has no Practitioner\/nobody/)
  })

  it('validates a policy file, pasted or uploaded, and names the line of each error (ADMIN-24)', async () => {
    const test = (text: string) => admin.post('/admin/policy', { text })
    assert.match((await test('rules:\n  - clinicians: all\n    patients: all\n')).body, /The file is valid/)
    const faulty = await test('rules:\n  - clinicians: all\n    patients: 7\n  - clinicians: nobody\n')
    assert.equal(faulty.statusCode, 422)
    assert.match(
      faulty.body,
      /rules\[0\]\.patients: expected [^<]*\(line 3\)<[\s\S]*rules\[1\]\.clinicians: [^<]*\(line 4\)</,
    )
    assert.match((await test('rules: [')).body, /at line 1/)
    const payload =
      '--b\r\ncontent-disposition: form-data; name="file"; filename="p.yaml"\r\n\r\nrules: []\r\n--b--\r\n'
    const headers = {
      'content-type': 'multipart/form-data; boundary=b',
      cookie: [...admin.cookies].map(pair => pair.join('=')).join('; '),
    }
    const send = (body: string) =>
      auth.app.inject({ method: 'POST', url: '/admin/policy', payload: body, headers })
    assert.match((await send(payload)).body, /The file is valid/)
    assert.equal((await send('no form')).statusCode, 400)
    assert.equal((await send(payload.replace('[]', 'x'.repeat(300_000)))).statusCode, 413)
  })

  it('refuses a repeated key of a policy file, and thousands of keys take no seconds (ADMIN-24)', () => {
    assert.match(JSON.stringify(checkPolicy('rules: []\nrules: []\n')), /must be unique at line 2/)
    const keys = [...Array(14_000).keys()].map(key => key.toString(36))
    const started = process.cpuUsage()
    assert.ok(isFailure(checkPolicy(`{${keys.join(',')}}`)))
    const { user } = process.cpuUsage(started)
    assert.ok(user < 1_000_000, `${user} µs`)
  })

  it('shows who may see a patient, and why (ADMIN-24)', async () => {
    assert.match(
      (await admin.get('/admin/policy?patient=Patient/juniper')).body,
      /No policy[\s\S]*All clinicians/,
    )
    assert.equal((await admin.get('/admin/policy?patient=nobody')).statusCode, 404)
  })

  it('lists sign-in providers (ADMIN-24)', async () => {
    assert.match((await admin.get('/admin/providers')).body, /No sign-in providers/)
    assert.equal((await admin.post('/admin/providers/nobody/test', {})).statusCode, 404)
  })

  describe('/audit', () => {
    it('filters, pages and shows the records (ADMIN-21)', async () => {
      await admin.get('/admin/audit')
      assert.equal((await findLastAction())?.details, null)
      const all = (await admin.get('/admin/audit?kind=login')).body
      assert.match(all, /Sign-in<\/td>[\s\S]*Dr\. ada/)
      assert.doesNotMatch(all, /Not an administrator/)
      for (let count = 0; count < 51; count += 1) await (await auth.logIn()).get('/admin')
      const first = (await admin.get('/admin/audit?kind=admin&result=refused')).body
      const older = /href="(\/admin\/audit\?[^"]*after=[^"]*)"/.exec(first)?.[1]?.replaceAll('&amp;', '&')
      assert.match((await admin.get(older ?? '')).body, /Not an administrator/)
      const id = /\/admin\/audit\/(\d+)"/.exec(first)?.[1]
      assert.match((await admin.get(`/admin/audit/${id}`)).body, /AuditEvent/)
      assert.match((await admin.get('/admin/audit?kind=admin')).body, new RegExp(`audit show ${id}`))
      for (const unknown of ['x', '0', '9'.repeat(30)])
        assert.equal((await admin.get(`/admin/audit/${unknown}`)).statusCode, 404)
    })

    it('says of each record whether it was allowed, failed or refused (ADMIN-21)', async () => {
      const store = await open()
      const audit = createAuditor({ store })
      const server = await TestAuthServer.open(store, { audit })
      await server.addUser('root1', { admin: true })
      const event = { server: 'fhir', kind: 'fhir', allowed: true, at: 1 } as const
      await audit.record(
        { ...event, status: 200 },
        { ...event, status: 400 },
        { ...event, status: 404 },
        { ...event, status: 401, allowed: false },
      )
      const officer = await server.logIn('root1')
      const { body } = await officer.get('/admin/audit?until=1970-01-01')
      const results = [...body.matchAll(/(\w+)<\/span> <span class="status">(\d+)/g)]
      assert.deepEqual(results.map(([, word, status]) => `${word} ${status}`).toReversed(), [
        'Allowed 200',
        'Failed 400',
        'Allowed 404',
        'Refused 401',
      ])
    })

    it('finds a user by username, name, account and FHIR user, and an app by its name (ADMIN-21)', async () => {
      const store = await open()
      const audit = createAuditor({ store })
      const server = await TestAuthServer.open(store, { audit })
      await server.addUser('root1', { admin: true })
      await server.addClient({ client_id: 'growth', name: 'Growth Chart' })
      await server.addUser('mia', { fhir_user_id: 'shared' })
      await server.addUser('mio', { fhir_user_id: 'shared' })
      const officer = await server.logIn('root1')
      const [{ id = '' } = {}, other] = await store.db
        .selectFrom('clinician')
        .select('id')
        .where('fhir_user_id', '=', 'shared')
        .orderBy('username')
        .execute()
      const event = { server: 'fhir', kind: 'fhir', allowed: true, status: 200 } as const
      const fhirUser = 'Practitioner/shared'
      await audit.record(
        { ...event, at: 1, request: 'of-mia', subject: id, fhirUser, client: 'growth' },
        { ...event, at: 2, request: 'of-mio', subject: other?.id, fhirUser },
        {
          ...event,
          at: 3,
          kind: 'admin',
          method: 'sallyport',
          address: 'alice as root@vm',
          request: 'of-alice',
        },
      )
      const find = async (query: Readonly<Record<string, string>>) => {
        const { body } = await officer.get(
          `/admin/audit/export.csv?${new URLSearchParams({ until: '1970-01-01', ...query })}`,
        )
        return [...body.matchAll(/,(of-\w+),/g)].map(([, name]) => name).toSorted()
      }
      for (const user of ['mia', 'MIA', 'Dr. mia', id])
        assert.deepEqual(await find({ user }), ['of-mia'], user)
      assert.deepEqual(await find({ user: 'mi' }), ['of-mia', 'of-mio'])
      assert.deepEqual(await find({ user: fhirUser }), ['of-mia', 'of-mio'])
      for (const user of ['alice as root@vm', 'alice', 'root'])
        assert.deepEqual(await find({ user }), ['of-alice'], user)
      assert.deepEqual(await find({ app: 'growth chart' }), ['of-mia'])
      assert.match(
        (await officer.get('/admin/audit/export.csv?user=mia')).body,
        /,username\r\n[\s\S]*,mia\r\n/,
      )
      const ndjson = (await officer.get('/admin/audit/export.ndjson?user=mia')).body
      assert.match(ndjson, /"altId":"mia"/)

      await officer.get(`/admin/clinicians/${id}/remove`)
      await officer.post(`/admin/clinicians/${id}/remove`, {})
      assert.equal(
        await store.db.selectFrom('clinician').select('id').where('id', '=', id).executeTakeFirst(),
        undefined,
      )
      for (const user of ['mia', 'Dr. mia', id]) assert.deepEqual(await find({ user }), ['of-mia'], user)

      const nobody = (await officer.get('/admin/audit?user=Juniper%20Ash')).body
      assert.match(nobody, /No account, app, FHIR user or operator is known as Juniper Ash/)
      assert.equal((await officer.get('/admin/audit/export.csv?user=nobody')).statusCode, 400)
      const kept = await findRecords(store, { events: [{ kind: 'admin' }], limit: 100 })
      assert.ok(
        kept.every(({ details }) => !details?.includes('Juniper Ash')),
        'it may be the name of a patient',
      )
    })

    it('finds the changes to an account, an app or a grant (ADMIN-21)', async () => {
      const store = await open()
      const server = await TestAuthServer.open(store, { audit: createAuditor({ store }) })
      await server.addUser('root1', { admin: true })
      await server.addUser('mia')
      await server.addClient({ client_id: 'mia', name: 'Growth Chart' })
      const officer = await server.logIn('root1')
      const user = await store.db
        .selectFrom('clinician')
        .select('id')
        .where('username', '=', 'mia')
        .executeTakeFirstOrThrow()
      await server.exchange(await server.getCode(await server.logIn('mia')))
      const { id: grant } = await store.db.selectFrom('grant').select('id').executeTakeFirstOrThrow()
      await officer.post(`/admin/grants/${grant}/revoke`, {})
      await officer.post('/admin/apps/mia/disable', {})
      await officer.post(`/admin/clinicians/${user.id}/disable`, {})
      const find = async (target: string) => {
        const { body } = await officer.get(`/admin/audit/export.csv?${new URLSearchParams({ target })}`)
        return [...body.matchAll(/,auth,admin,[^\n]*?,(?:admin),([^,]+),/g)].map(([, request]) => request)
      }
      const [ofUser, ofGrant, ofApp] = [
        'clinician disable mia',
        `grant revoke ${grant}`,
        'client disable mia',
      ]
      assert.deepEqual(await find('Dr. mia'), [ofUser, ofGrant])
      assert.deepEqual(await find('mia'), [ofUser, ofApp, ofGrant])
      assert.deepEqual(await find('app/mia'), [ofApp])
      assert.deepEqual(await find(grant), [ofGrant])
      const page = (await officer.get(`/admin/clinicians/${user.id}`)).body
      const link = /href="([^"]*)">Changes to this account/.exec(page)?.[1] ?? ''
      assert.match((await officer.get(link.replaceAll('&amp;', '&'))).body, /clinician disable mia/)
      assert.match((await officer.get('/admin/apps/mia')).body, /target=app%2Fmia">Changes to this app/)
      assert.match((await officer.get('/admin/audit?target=eve')).body, /is known as eve/)
      const launched = (await officer.get(`/admin/audit?launch=${grant}&patient=juniper`)).body
      assert.match(launched, /grant revoke/)

      await officer.post(`/admin/clinicians/${user.id}/remove`, {})
      await officer.post('/admin/apps/mia/remove', {})
      assert.deepEqual(await find('account/mia'), ['clinician remove mia', ofUser, ofGrant])
      assert.deepEqual(await find('Growth Chart'), ['client remove mia', ofApp])
      assert.match((await officer.get(`/admin/audit?user=${user.id}`)).body, /Dr\. mia/)
    })

    it('tells opened from listed, and links to what can be ended (ADMIN-21)', async () => {
      const store = await open()
      const audit = createAuditor({ store })
      const server = await TestAuthServer.open(store, { audit })
      await server.addUser('root1', { admin: true })
      await server.addUser('mia')
      await server.addClient({ client_id: 'growth', name: 'Growth Chart' })
      const { id } = await store.db
        .selectFrom('clinician')
        .select('id')
        .where('username', '=', 'mia')
        .executeTakeFirstOrThrow()
      const event = { server: 'fhir', kind: 'fhir', allowed: true, status: 200, subject: id } as const
      const read = { ...event, interaction: 'read', type: 'Patient', id: 'juniper', patient: 'juniper' }
      const search = { ...event, interaction: 'search-type', type: 'Patient', patient: 'juniper' }
      const portal = { client: 'sallyport-portal', address: '10.0.0.8' }
      const app = { client: 'growth', address: '127.0.0.1' }
      await audit.record(
        { ...event, at: 1, server: 'auth', kind: 'launch', launch: 'l-1', address: '10.9.9.9' },
        { ...event, at: 2, server: 'auth', kind: 'authorize', launch: 'l-1', address: '10.0.0.8' },
        { ...event, at: 3, server: 'auth', kind: 'authorize', launch: 'l-2', address: '10.0.0.9' },
        { ...read, ...app, at: 4, launch: 'l-1' },
        { ...read, ...app, at: 5, launch: 'l-2', interaction: 'update' },
        { ...read, ...app, at: 6, launch: 'l-2', status: 404 },
        { ...read, ...app, at: 7, client: 'removed-app', address: '10.0.0.3' },
        { ...search, ...portal, at: 8 },
        { ...search, ...portal, at: 9, reason: 'Lookup in the administration' },
        { ...search, ...portal, at: 9, reason: 'Check of an account' },
        { ...search, ...portal, at: 9, reason: 'Warning of similar names' },
        { ...search, ...portal, at: 10, subject: 'sallyport-portal', address: '127.0.0.1' },
      )
      const officer = await server.logIn('root1')
      const { body } = await officer.get('/admin/audit?patient=Patient/juniper')
      const list = (caption: string) => {
        const table = body.split(`<caption class="sr">${caption}, most recent first`)[1]?.split('</table>')[0]
        return (table ?? '')
          .split('<tr')
          .slice(2)
          .map(row => [
            row.replace(/<td[^>]*>/g, '|').replace(/<[^>]*>/g, ''),
            [...row.matchAll(/href="([^"]*)"/g)].map(([, href]) => href?.replace(/^\/admin/, '')).slice(1),
          ])
      }
      const now = `/access?user=${id}&amp;app=growth`
      const opened = list('Who opened the record')
      assert.deepEqual(
        opened.map(([, links]) => links),
        [[], [now], [now]],
      )
      assert.match(String(opened[0]?.[0]), /removed-app\|10\.0\.0\.3\|1\|/)
      assert.match(
        String(opened[1]?.[0]),
        /Growth Chart Changed the record\|10\.0\.0\.9Requests from 127\.0\.0\.1\|1\|/,
      )
      assert.match(String(opened[2]?.[0]), /Growth Chart\|10\.0\.0\.8Requests from 127\.0\.0\.1\|1\|/)
      const listed = list('Appeared in a list')
      assert.deepEqual(
        listed.map(([, links]) => links),
        [[`/clinicians/${id}#sign-ins`]],
      )
      const own = list('Read by the server for itself, for example to find out who may open the record')
      assert.deepEqual(
        own.map(([, links]) => links),
        [[], [`/clinicians/${id}#sign-ins`]],
      )
      assert.match(
        String(list('Looked up in the administration')[0]?.[0]),
        /Administration\|10\.0\.0\.8\|2\|/,
      )
      assert.match((await officer.get(`/admin/clinicians/${id}`)).body, /id="sign-ins"/)
      const rows = async (query: string) =>
        [...(await officer.get(`/admin/audit?${query}`)).body.matchAll(/Details<span/g)].length
      assert.equal(await rows('address=10.0.0.8&until=1970-01-01'), 5)
      assert.equal(await rows('address=10.0.0.8&patient=Patient/juniper'), 4)

      await officer.post(`/admin/clinicians/${id}/remove`, {})
      const after = (await officer.get('/admin/audit?patient=Patient/juniper')).body
      assert.doesNotMatch(after, /(?:Access|Sign-ins) now/)
      assert.match(after, /Dr\. mia/)
    })

    it('tells apart the patients that a name means (ADMIN-21)', async () => {
      const store = await open()
      const audit = createAuditor({ store })
      const named = (family: string, ids: readonly string[]) => ids.map(id => patient(id, family, `Al${id}`))
      const oaks = ['o0', 'o1', 'o2', 'o3', 'o4', 'o5']
      const resources = [...named('Juniper', ['p0', 'p1']), ...named('Oak', oaks)]
      const server = await TestAuthServer.open(store, { audit, resources })
      await server.addUser('root1', { admin: true })
      const event = { server: 'fhir', kind: 'fhir', allowed: true, status: 200, at: 1 } as const
      for (const [subject, id] of [
        ['mia', 'p0'],
        ['noa', 'p1'],
        ['noa', 'o1'],
      ] as const)
        await audit.record({ ...event, subject, interaction: 'read', type: 'Patient', id, patient: id })
      const officer = await server.logIn('root1')
      const { body } = await officer.get('/admin/audit?patient=juniper')
      const [, first = '', second = ''] = body.split('<h3')
      assert.match(first, /Juniper, Alp0<[\s\S]*<code>p0<[\s\S]*mia[\s\S]*user=mia&amp;patient=Patient%2Fp0/)
      assert.doesNotMatch(first, /noa/)
      assert.match(second, /Juniper, Alp1<[\s\S]*<code>p1<[\s\S]*noa/)
      const many = (await officer.get('/admin/audit?patient=oak')).body
      assert.match(many, /Oak, Alo5[\s\S]*Choose one of these patients to see who got data/)
      assert.doesNotMatch(many, /<h3/)
    })

    it('exports the filtered records, and records the export (ADMIN-21)', async () => {
      const ndjson = await admin.get(
        '/admin/audit/export.ndjson?kind=login&user=Practitioner/practitioner-of-ada',
      )
      assert.match(String(ndjson.headers['content-disposition']), /attachment; filename="audit.ndjson"/)
      const events = ndjson.body
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line))
      assert.ok(events.length > 0 && events.every(({ resourceType }) => resourceType === 'AuditEvent'))
      const csv = await admin.get('/admin/audit/export.csv?kind=admin&result=allowed')
      assert.match(csv.body, /^id,at,server,kind,.*\r\n\d+,2026-11-13T14:\d\d:\d\d.000Z,auth,admin,/)
      assert.match(csv.body, /,audit export ndjson,/)
    })

    it('writes no formula into a CSV file (ADMIN-21)', async () => {
      const reason = '=HYPERLINK("https://evil.test")'
      const event = { at: 1, server: 'auth', kind: 'register', allowed: true, status: 201, reason } as const
      await createAuditor({ store: auth.store }).record(event)
      const { body } = await admin.get('/admin/audit/export.csv?kind=register')
      assert.match(body, /,"'=HYPERLINK\(""https/)
    })
  })
})
