import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../test/support/databases.ts'
import { createAuditor, findRecords } from '../audit/index.ts'
import { sha256 } from '../store/index.ts'
import { listRoutes } from '../web/http/index.ts'
import { createGrant } from './oauth/grants/grant.ts'
import { addBackend, requestBackendToken } from './testing/backend.ts'
import { testSettings } from './testing/settings.ts'
import { decodeClaims, readRedirect, TestAuthServer } from './testing/test-auth-server.ts'
import type { TestBrowser } from './testing/test-browser.ts'
import { computeClientMark } from './users/validity/rule.ts'

eachDatabaseIfThorough((_name, open) => {
  describe('an account that opens no records (LOGIN-19)', () => {
    let auth: TestAuthServer
    let admin: TestBrowser
    before(async () => {
      const store = await open()
      auth = await TestAuthServer.open(store, { audit: createAuditor({ store }), settings: { lab: true } })
      await auth.addUser('ada', { admin: true })
      await auth.addUser('vera', { auditor: true, fhir_user_id: '' })
      await auth.addUser('root', { admin: true, fhir_user_id: '' })
      await auth.addUser('hugo', { fhir_user_id: '' })
      admin = await auth.logIn('ada')
    })

    const countGrants = async (username: string) => {
      const { id } = await auth.findUser(username)
      return (await auth.store.db.selectFrom('grant').select('id').where('clinician_id', '=', id).execute())
        .length
    }
    const isAccepted = async (token: string) =>
      (await auth.openBrowser().get('/oauth2/userinfo', { authorization: `Bearer ${token}` })).statusCode ===
      200

    it('begins in the administration area, or with the account', async () => {
      for (const [username, start] of [
        ['vera', '/admin'],
        ['hugo', '/account'],
      ] as const) {
        const browser = await auth.logIn(username)
        assert.equal((await browser.get('/portal')).headers.location, start)
        assert.equal((await browser.post('/portal/launch', { patientId: 'juniper' })).headers.location, start)
        const { body } = await browser.get('/account')
        assert.match(body, /This account opens no patient records\./)
        assert.doesNotMatch(body, /<li><a href="\/(?:portal|manage|activity|lab|apps)"/)
        assert.doesNotMatch((await browser.get('/manage')).body, /Go to patients/)
      }
    })

    it('reads why no app opens, and no code is issued', async () => {
      const browser = await auth.logIn('vera')
      for (const scope of ['launch/patient patient/*.rs', 'openid fhirUser']) {
        const { statusCode, body } = await auth.authorize(browser, { scope })
        assert.equal(statusCode, 403)
        assert.match(body, /<h1>This account opens no patient records<[\s\S]*access_denied/)
      }
      const { error, error_description } = readRedirect(await auth.authorize(browser, { prompt: 'none' }))
      assert.deepEqual(
        [error, error_description],
        ['access_denied', 'This account opens no patient records.'],
      )
      const [record] = await findRecords(auth.store, { events: [{ kind: 'authorize' }], limit: 1 })
      assert.deepEqual([record?.allowed, record?.fhir_user], [false, null])
      const waiting = auth.openBrowser()
      const { location = '' } = (await auth.authorize(waiting, { scope: 'launch/patient patient/*.rs' }))
        .headers
      const interaction = location.split('=')[1] ?? ''
      const signedIn = await waiting.post('/login', { interaction, username: 'vera', password: 'sallyport' })
      const resumed = await waiting.follow(signedIn, 'http://localhost:9000')
      assert.match(resumed.body, /<h1>This account opens no patient records</)
      const pick = location.replace('/login', '/oauth2/pick')
      assert.doesNotMatch((await waiting.get(pick)).body, /Juniper/)
      assert.equal(await countGrants('vera'), 0)
    })

    it('gets no grant, whoever asks for one', async () => {
      const client = await auth.store.db.selectFrom('client').selectAll().executeTakeFirstOrThrow()
      const context = { rules: auth.rules, clock: () => auth.time.now }
      const create = async (username: string) => {
        const [id = ''] = (await auth.logIn(username)).cookies.values()
        return createGrant(auth.store.db, context, {
          client: { id: client.client_id, mark: computeClientMark(client) },
          loginIdHash: sha256(id),
          ...{
            scope: 'user/*.rs',
            patientId: undefined,
            encounterId: undefined,
            needPatientBanner: undefined,
          },
          ...{ fromEhr: false, extraContext: {}, authTime: 0, acr: undefined, amr: undefined },
          ...{ fhirUserId: undefined, launchId: undefined },
        })
      }
      assert.notEqual(await create('ada'), undefined)
      assert.equal(await create('hugo'), undefined)
    })

    it('is launched by no other system and not by the lab', async () => {
      await addBackend(auth, 'ehr', '__launch-contexts.c')
      const token = await requestBackendToken(auth, 'ehr', '__launch-contexts.c')
      const order = (username: string) =>
        auth.app.inject({
          method: 'POST',
          url: '/launch-contexts',
          headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
          payload: JSON.stringify({ client_id: 'sallyport-app', username, patient: 'juniper' }),
        })
      assert.equal((await order('ada')).statusCode, 201)
      assert.match((await order('vera')).body, /The username is unknown/)
      const lab = `/lab/launch?client=sallyport-app&patient=juniper`
      assert.equal((await auth.openBrowser().get(`${lab}&user=ada`)).statusCode, 302)
      assert.notEqual((await auth.openBrowser().get(`${lab}&user=vera`)).statusCode, 302)
      assert.notEqual((await (await auth.logIn('root')).get(lab)).statusCode, 302)
    })

    it('reads no patient on any page: the server looks up users with its own access, and nothing on its behalf', async () => {
      await auth.addUser('mira', { fhir_user_id: 'Patient/juniper' })
      await auth.exchange(await auth.getCode(await auth.logIn()))
      const { id } = await auth.findUser('mira')
      const count = auth.fhir.requests.length
      for (const username of ['root', 'vera', 'hugo']) {
        const browser = await auth.logIn(username)
        for (const { path } of listRoutes(auth.app).filter(({ method }) => method === 'GET')) {
          const { body } = await browser.get(path.replace(/:\w+/g, id))
          assert.doesNotMatch(body, /Alba|Ashlar/, path)
        }
        for (const path of [
          '/admin/access?patient=Juniper',
          '/admin/policy?patient=Juniper',
          '/admin/access',
        ])
          assert.doesNotMatch((await browser.get(path)).body, /Alba|Ashlar/, path)
      }
      const own = (await Promise.all(['root', 'vera', 'hugo'].map(name => auth.findUser(name)))).map(
        row => row.id,
      )
      const tokens = auth.fhir.requests
        .slice(count)
        .flatMap(({ authorization }) => (authorization ? [decodeClaims(authorization.slice(7))] : []))
      assert.ok(tokens.length > 0)
      for (const { scope, fhirUser } of tokens.filter(({ sub }) => own.includes(String(sub))))
        assert.deepEqual([String(scope).replace(/system\/\w+\.rs ?/g, ''), fhirUser], ['', undefined])
      const root = await auth.logIn('root')
      assert.match((await root.get('/admin/access')).body, /<code>juniper<\/code>/)
    })

    it('finds a patient by name or MRN for the audit trail, recorded as such, and sees who it is and nothing else', async () => {
      const { id } = await auth.findUser('vera')
      for (const username of ['vera', 'root']) {
        const browser = await auth.logIn(username)
        for (const [text, found] of [
          ['Juniper Alba', /Patients?: <a[^>]*>Juniper, Alba, born 14-Mar-1958, id juniper<\/a>/],
          ['1958-03-14', /Juniper, Alba, born/],
          ['Nobody', /Unknown patient\.[\s\S]*No patient is known as Nobody\. Check the spelling/],
        ] as const) {
          auth.fhir.requests.length = 0
          const { body } = await browser.get(`/admin/audit?${new URLSearchParams({ patient: text })}`)
          assert.match(body, found, username)
          assert.doesNotMatch(body, /female|Female/)
          for (const { url, authorization } of auth.fhir.requests) {
            assert.equal(url.searchParams.get('_elements'), 'id,name,birthDate,identifier', url.search)
            const { sub, scope, audit } = decodeClaims(authorization?.slice(7) ?? '')
            assert.equal(scope, 'system/Patient.rs')
            assert.partialDeepStrictEqual(audit, { note: 'Search for a patient in the audit trail' })
            if (username === 'vera') assert.equal(sub, id)
          }
        }
      }
      assert.match((await admin.get('/admin/audit')).body, /Patient \(name, MRN or id\)/)
    })

    it('is never told to check the spelling of what it may not look up, and the hospital can switch the search off', async () => {
      const off = await TestAuthServer.open(auth.store, {
        audit: createAuditor({ store: auth.store }),
        settings: { lab: true, audit: { ...testSettings.audit, patientSearch: false } },
      })
      const NOT =
        /Not looked up\.[\s\S]*Your account opens no patient records, so it finds none by name or number: enter the FHIR id(, which the search of the audit page shows)?\./
      for (const [server, paths] of [
        [auth, ['access', 'policy']],
        [off, ['access', 'policy', 'audit']],
      ] as const) {
        const browser = await server.logIn('root')
        server.fhir.requests.length = 0
        for (const path of paths)
          for (const text of ['Juniper', 'Alba Juniper', 'SYN-004127']) {
            const { body } = await browser.get(`/admin/${path}?${new URLSearchParams({ patient: text })}`)
            const [, hint] = NOT.exec(body) ?? [assert.fail(`${path} ${text}`)]
            assert.equal(hint !== undefined, server === auth)
            assert.doesNotMatch(body, /Check the spelling|Unknown patient|No patient is known|Alba,/)
            assert.match(body, /Patient \(FHIR id\)/)
          }
        const names = server.fhir.requests.filter(({ url }) => url.search !== '')
        assert.deepEqual(names, [])
        const forms = (await browser.get('/admin/clinicians/new')).body
        assert.doesNotMatch(forms, /Find a patient/)
      }
    })

    it('is made on the page of a user: sign-ins and tokens end at once, and a FHIR user undoes it', async () => {
      await auth.addUser('bob')
      const bob = await auth.logIn('bob')
      const tokens = (await auth.exchange(await auth.getCode(bob))).json()
      assert.equal(await isAccepted(tokens.access_token), true)
      const { id } = await auth.findUser('bob')
      const path = `/admin/clinicians/${id}`
      assert.match(
        (await admin.get(path)).body,
        /name="noRecords" value="1">[\s\S]*The account loses its FHIR user Practitioner\/practitioner-of-bob\./,
      )
      const other = { kind: 'clinician', displayName: 'Bob', fhirUser: 'practitioner-9', noRecords: '1' }
      const dropped = await admin.post(path, other)
      assert.equal(dropped.statusCode, 400)
      assert.match(dropped.body, /value="Practitioner\/practitioner-9"|value="practitioner-9"/)
      assert.match(dropped.body, /opens no patient records has no FHIR user: leave it out/)
      const form = { kind: 'clinician', displayName: 'Bob', fhirUser: 'practitioner-of-bob' }
      assert.equal((await admin.post(path, { ...form, noRecords: '1' })).statusCode, 303)
      assert.equal((await auth.findUser('bob')).fhir_user_id, '')
      assert.equal(await isAccepted(tokens.access_token), false)
      assert.equal((await auth.refresh(tokens.refresh_token ?? 'x')).json().error, 'invalid_grant')
      assert.equal((await bob.get('/account')).headers.location, '/login')
      const { body } = await admin.get(path)
      assert.match(body, /No records[\s\S]*name="noRecords" value="1" checked>/)
      assert.doesNotMatch(body, /has no Practitioner/)
      const [record] = await findRecords(auth.store, { events: [{ kind: 'admin' }], limit: 1 })
      assert.equal(record?.reason, 'Changed: display name, FHIR user, records')
      const without = await admin.post(path, { ...form, fhirUser: '' })
      assert.deepEqual([without.statusCode, /reference to a Practitioner/.test(without.body)], [400, true])
      const again = { ...form, confirmed: 'Practitioner/practitioner-of-bob' }
      assert.equal((await admin.post(path, again)).statusCode, 303)
      assert.equal((await (await auth.logIn('bob')).get('/portal')).statusCode, 200)
    })

    it('is added on the page, and offered with the roles', async () => {
      const path = '/admin/clinicians/new'
      const form = { kind: 'clinician', username: 'sec', displayName: 'Sec', fhirUser: '', password: '1' }
      assert.equal((await admin.post(path, form)).statusCode, 400)
      const named = await admin.post(path, { ...form, fhirUser: 'Practitioner/7', noRecords: '1' })
      assert.equal(named.statusCode, 400)
      assert.match(named.body, /id="fhirUser"[^>]*aria-invalid="true"/)
      assert.equal((await admin.post(path, { ...form, noRecords: '1' })).statusCode, 200)
      assert.equal((await auth.findUser('sec')).fhir_user_id, '')
      const patient = { ...form, username: 'p', kind: 'account', noRecords: '1' }
      assert.match(
        (await admin.post(path, patient)).body,
        /Only the account of a clinician can be for administration only, without patient records/,
      )
      await auth.addUser('cleo')
      const { id } = await auth.findUser('cleo')
      const asked = await admin.get(`/admin/clinicians/${id}/make-auditor`)
      assert.match(asked.body, /can still open patient records[\s\S]*name="noRecords"/)
      await admin.post(`/admin/clinicians/${id}/make-auditor`, { noRecords: '1' })
      const { auditor, fhir_user_id } = await auth.findUser('cleo')
      assert.deepEqual([Boolean(auditor), fhir_user_id], [true, ''])
      const list = (await admin.get('/admin/clinicians?state=auditors')).body
      assert.match(list, /cleo[\s\S]*No records/)
      assert.doesNotMatch(
        (await admin.get('/admin')).body,
        /in common|has no resource for the FHIR user of the accounts? .*vera/,
      )
    })

    it('is not made of the own account, whose sign-in would end', async () => {
      const { id } = await auth.findUser('ada')
      const form = { kind: 'clinician', displayName: 'Ada', fhirUser: '', noRecords: '1' }
      const refused = await admin.post(`/admin/clinicians/${id}`, form)
      assert.deepEqual([refused.statusCode, /This is your own account/.test(refused.body)], [409, true])
      const root = await auth.logIn('root')
      const { statusCode } = await root.post(`/admin/clinicians/${(await auth.findUser('root')).id}`, form)
      assert.equal(statusCode, 303)
    })

    it('is made by the administration API', async () => {
      const secret = { auth_method: 'client_secret', secret_hash: sha256('s') } as const
      await auth.addClient({
        client_id: 'api',
        ...secret,
        scope: 'sallyport/admin',
        redirect_uris: '[]',
        launch_url: null,
      })
      const client = { client_id: 'api', client_secret: 's', scope: 'sallyport/admin' }
      const { access_token } = (
        await auth.requestToken({ grant_type: 'client_credentials', ...client })
      ).json()
      const send = async (method: 'POST' | 'PATCH', path: string, payload: object) => {
        const headers = { authorization: `Bearer ${access_token}` }
        const response = await auth.app.inject({
          method,
          url: `/admin/api/clinicians${path}`,
          headers,
          payload,
        })
        return [response.statusCode, response.json()] as const
      }
      const user = { username: 'api-user', display_name: 'A', auditor: true }
      assert.equal((await send('POST', '', user))[0], 400)
      assert.equal((await send('POST', '', { ...user, records: false, fhir_user: 'Practitioner/1' }))[0], 400)
      const [status, added] = await send('POST', '', { ...user, records: false })
      assert.deepEqual(
        [status, added.records, added.fhir_user, added.unknown_fhir_users],
        [201, false, undefined, []],
      )
      const path = `/${added.id}`
      assert.equal((await send('PATCH', path, { records: true }))[0], 400)
      const [, changed] = await send('PATCH', path, { fhir_user: 'Practitioner/1' })
      assert.deepEqual([changed.records, changed.fhir_user], [true, 'Practitioner/1'])
      const [, ended] = await send('PATCH', path, { records: false })
      assert.deepEqual([ended.records, ended.fhir_user], [false, undefined])
    })
  })
})
