import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { makeCertificate } from '../../../../test/support/certificate.ts'
import { SERVICE, startDirectory } from '../../../../test/support/directory.ts'
import { createAuditor, findRecords } from '../../../audit/index.ts'
import type { LdapProvider } from '../../../config/index.ts'
import { readCodes, readEnrolment, TestPhone } from '../../testing/second-factor.ts'
import type { TestAuthServer } from '../../testing/test-auth-server.ts'
import { describeSignIn, openSignInServer } from '../../testing/test-sign-in.ts'
import { openTestStore } from '../../testing/test-store.ts'

const PEOPLE = 'ou=people,dc=ehr,dc=example'
const makeUser = (uid: string, number: string) => ({
  dn: `uid=${uid},${PEOPLE}`,
  password: `password of ${uid}`,
  attributes: {
    objectclass: 'inetOrgPerson',
    uid,
    cn: `Dr. ${uid}`,
    employeenumber: number,
    employeeNumber: number,
    entryUUID: `id-of-${uid}`,
    entryuuid: `id-of-${uid}`,
  },
})
const makeLocked = (uid: string, state: 'locked' | 'disabled') => ({ ...makeUser(uid, uid), state })
/** A directory ignores case and spaces, so that one account has many usernames. */
const SPELLINGS = ['edsger', 'EDSGER', 'Edsger', 'edsgeR', 'eDSGER']
const ENTRIES = [
  makeLocked('leslie', 'locked'),
  makeLocked('donald', 'disabled'),
  {
    ...makeUser('edsger', 'dijkstra'),
    attributes: { ...makeUser('edsger', 'dijkstra').attributes, uid: SPELLINGS },
  },
  makeUser('ada', 'byron'),
  makeUser('grace', 'lovelace'),
  {
    dn: 'cn=clinicians,ou=groups,dc=ehr,dc=example',
    attributes: { objectclass: 'groupOfNames', cn: 'clinicians', member: `uid=ada,${PEOPLE}` },
  },
]

describe('sign-in at a directory (LDAP)', () => {
  const open = openTestStore()
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-ldap-'))
  let directory: Awaited<ReturnType<typeof startDirectory>>
  let auth: TestAuthServer
  const makeProvider = (changes: Partial<LdapProvider> = {}): LdapProvider => ({
    kind: 'ldap',
    id: 'staff',
    name: 'Hospital account',
    url: directory.url,
    tlsCa: undefined,
    bindDn: SERVICE.dn,
    bindPasswordFile: join(folder, 'password'),
    baseDn: 'dc=ehr,dc=example',
    userFilter: '(&(objectClass=inetOrgPerson)(uid={username}))',
    groupFilter: '(member={dn})',
    usernameClaim: 'uid',
    displayNameClaim: 'cn',
    provision: true,
    fhirUser: { kind: 'template', template: 'Practitioner/{employeeNumber}' },
    allow: { claim: 'groups', values: ['clinicians'] },
    admin: undefined,
    ...changes,
  })
  const openServer = async (changes?: Partial<LdapProvider>) =>
    openSignInServer(await open(), [makeProvider(changes)])
  before(async () => {
    writeFileSync(join(folder, 'password'), `${SERVICE.password}\n`)
    directory = await startDirectory(ENTRIES)
    auth = await openServer()
  })
  after(async () => {
    await directory.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const logIn = async (username: string, password: string, server = auth) =>
    describeSignIn(await server.openBrowser().post('/login', { username, password, provider: 'staff' }))

  /** How many of these simultaneous wrong guesses were tried: 401, and not 429. */
  async function guess(usernames: readonly string[], server: TestAuthServer): Promise<number> {
    const results = await Promise.all(usernames.map(username => logIn(username, 'wrong', server)))
    for (const result of results) assert.match(result, /^(401|429)/)
    return results.filter(result => result.startsWith('401')).length
  }

  it('shows a form of its own, beside that of the clinician table (SIGNIN-14)', async () => {
    const browser = auth.openBrowser()
    assert.match((await browser.get('/login')).body, /href="\/login\?provider=staff">Hospital account</)
    const { body } = await browser.get('/login?provider=staff')
    assert.match(body, /Use your Hospital account\./)
    assert.match(body, /<input type="hidden" name="provider" value="staff">/)
    assert.match(body, /href="\/login\?provider=password">Sallyport account</)
  })

  it('asks administrators of a group for a second factor, after the password of the directory (FACTOR-5)', async () => {
    const admin = { claim: 'groups', values: ['clinicians'] }
    const login = {
      order: [],
      passwords: true,
      secondFactor: 'administrators' as const,
      providers: [makeProvider({ admin })],
    }
    const server = await openSignInServer(await open(), login.providers, { settings: { login } })
    const browser = server.openBrowser()
    const form = { username: 'ada', password: 'password of ada', provider: 'staff' }
    assert.equal(describeSignIn(await browser.post('/login', form)), '302 /login/enrol')
    assert.equal((await browser.get('/admin')).headers.location, '/login')
    const { body } = await browser.get('/login/enrol')
    const phone = new TestPhone(server, body)
    const proof = { enrolment: readEnrolment(body), code: phone.getCode() }
    assert.equal(readCodes(await browser.post('/login/enrol', proof)).length, 10)
    assert.equal((await browser.get('/admin')).statusCode, 200)
    const again = server.openBrowser()
    assert.equal(describeSignIn(await again.post('/login', form)), '302 /login/second-factor')
    const done = await again.post('/login/second-factor', { code: phone.takeNextCode() })
    assert.equal(describeSignIn(done), '302 /portal')
    const rows = await server.store.db.selectFrom('login').select(['issuer', 'amr']).execute()
    assert.deepEqual(rows.at(-1), { issuer: 'ldap:staff', amr: '["pwd","otp","mfa"]' })
  })

  it('comes first if the settings say so, and passwords of the clinician table still work', async () => {
    const login = {
      order: ['staff'],
      passwords: true,
      secondFactor: 'none' as const,
      providers: [makeProvider()],
    }
    const server = await openSignInServer(await open(), login.providers, { settings: { login } })
    const { body } = await server.openBrowser().get('/login')
    assert.match(body, /name="provider" value="staff">/)
    assert.ok(body.indexOf('name="password"') < body.indexOf('Sallyport account'))
    const own = (await server.openBrowser().get('/login?provider=password')).body
    assert.doesNotMatch(own, /name="provider"/)
    assert.ok(own.indexOf('name="password"') < own.indexOf('>Hospital account<'))
    assert.equal((await server.openBrowser().login()).headers.location, '/portal')
  })

  it('logs a user in with the attributes as claims (SIGNIN-14)', async () => {
    const browser = auth.openBrowser()
    const form = { username: 'ada', password: 'password of ada', provider: 'staff' }
    assert.equal((await browser.post('/login', form)).headers.location, '/portal')
    assert.match((await browser.get('/portal')).body, /Dr\. ada/)
    const link = await auth.store.db.selectFrom('clinician_link').selectAll().executeTakeFirstOrThrow()
    assert.deepEqual([link.issuer, link.subject], ['ldap:staff', 'id-of-ada'])
    assert.equal(await logIn('ada', 'password of ada'), '302 /portal')
  })

  it('needs the group, the right password and exactly one entry (SIGNIN-14)', async () => {
    assert.equal(await logIn('grace', 'password of grace'), '403 not-allowed')
    for (const [username, password] of [
      ['ada', 'password of grace'],
      ['nobody', 'password of ada'],
      ['', ''],
    ] as const)
      assert.match(await logIn(username, password), /^401/, username)
    const several = await openServer({ userFilter: '(|(uid={username})(objectClass=inetOrgPerson))' })
    assert.match(await logIn('ada', 'password of ada', several), /^401/)
  })

  it('never binds with an empty password, and a username cannot change the filter (SIGNIN-14)', async () => {
    const before = directory.binds.length
    assert.match(await logIn('ada', ''), /^401/)
    assert.equal(directory.binds.length, before)
    for (const username of ['*', 'ada)(uid=*', 'a*', 'ada)(|(uid=grace', '\\61da'])
      assert.match(await logIn(username, 'password of ada'), /^401/, username)
  })

  it('takes as many binds for an unknown username as for a wrong password (SIGNIN-14)', async () => {
    const count = async (username: string) => {
      const before = directory.binds.length
      await logIn(username, 'wrong')
      return directory.binds.length - before
    }
    assert.equal(await count('unknown'), await count('grace'))
  })

  it('records whose sign-in failed, unless the directory does not know the username (SIGNIN-14)', async () => {
    const store = await open()
    const audited = await openSignInServer(store, [makeProvider()], { audit: createAuditor({ store }) })
    assert.equal(await logIn('ada', 'password of ada', audited), '302 /portal')
    for (const username of ['ada', 'grace', 'a mistyped password'])
      assert.match(await logIn(username, 'wrong', audited), /^401/)
    const records = await findRecords(audited.store, {
      events: [{ kind: 'login' }],
      allowed: false,
      limit: 9,
    })
    const ada = await audited.store.db.selectFrom('clinician_link').selectAll().executeTakeFirstOrThrow()
    assert.deepEqual(
      records.map(({ subject, fhir_user }) => [subject, fhir_user]).toSorted(),
      [
        [ada.clinician_id, 'Practitioner/byron'],
        ['staff/grace', null],
        [null, null],
      ].toSorted(),
    )
  })

  it('limits failures (SIGNIN-14)', async () => {
    const limited = await openServer()
    assert.equal(
      await guess(
        Array.from({ length: 10 }, () => 'ada'),
        limited,
      ),
      10,
    )
    assert.match(await logIn('ada', 'password of ada', limited), /^429/)
    assert.match(await logIn('grace', 'password of grace', limited), /^403/)
  })

  it('keeps no browser of its user out, whatever others of its network try (SIGNIN-14, LOGIN-6)', async () => {
    const limited = await openSignInServer(await open(), [makeProvider()], {
      settings: { loginFailureLimitPerAddress: 15 },
    })
    const own = limited.openBrowser()
    const logInAgain = async (password = 'password of ada') =>
      describeSignIn(await own.post('/login', { username: 'ada', password, provider: 'staff' }))
    assert.equal(await logInAgain(), '302 /portal')
    const others = ['ada', 'grace'].flatMap(name => Array.from({ length: 10 }, () => name))
    await guess(others, limited)
    assert.match(await logIn('ada', 'password of ada', limited), /^429/)
    assert.equal(await logInAgain(), '302 /portal')
    // The browser is known to this account only, and its own guesses count.
    assert.match(
      describeSignIn(
        await own.post('/login', {
          username: 'grace',
          password: 'password of grace',
          provider: 'staff',
        }),
      ),
      /^429/,
    )
    for (let count = 0; count < 10; count++) assert.match(await logInAgain('wrong'), /^401/)
    assert.match(await logInAgain(), /^429/)
  })

  it('counts all spellings of one account together (SIGNIN-14)', async () => {
    const limited = await openServer()
    assert.equal(await guess([...SPELLINGS, ...SPELLINGS], limited), 10)
    assert.equal(await guess(SPELLINGS, limited), 0)
    assert.match(await logIn('edsger', 'password of edsger', limited), /^429/)
  })

  it('counts the spellings of an unknown username in the same way (SIGNIN-14)', async () => {
    const limited = await openServer()
    const usernames = ['Unknown', 'unknown', ' UNKNOWN', 'ｕnknown', 'unKnown ']
    assert.equal(await guess([...usernames, ...usernames, ...usernames], limited), 10)
  })

  it('never tries more simultaneous guesses at the directory than the limit (SIGNIN-14)', async () => {
    const limited = await openServer()
    const before = directory.binds.length
    assert.equal(
      await guess(
        Array.from({ length: 60 }, () => 'ada'),
        limited,
      ),
      10,
    )
    const tried = directory.binds.slice(before).filter(dn => dn.startsWith('uid=ada,'))
    assert.equal(tried.length, 10)
  })

  it('accepts many simultaneous sign-ins of one user (SIGNIN-14)', async () => {
    const right = Array.from({ length: 20 }, () => logIn('ada', 'password of ada'))
    assert.deepEqual(new Set(await Promise.all(right)), new Set(['302 /portal']))
  })

  it('treats a locked and a disabled account as a wrong password, and counts it (SIGNIN-14)', async () => {
    const limited = await openServer()
    for (const username of ['leslie', 'donald']) {
      assert.match(await logIn(username, `password of ${username}`, limited), /^401/)
      assert.equal(
        await guess(
          Array.from({ length: 20 }, () => username),
          limited,
        ),
        9,
      )
    }
  })

  it('takes as long for an unknown user as for a known one, although the directory does not (SIGNIN-14)', async () => {
    const slow = await startDirectory(ENTRIES, undefined, 150)
    const server = await openServer({ url: slow.url })
    const measure = async (username: string) => {
      const start = performance.now()
      assert.match(await logIn(username, 'wrong', server), /^401/)
      return performance.now() - start
    }
    try {
      const known = Math.min(await measure('ada'), await measure('ada'), await measure('ada'))
      const unknown = Math.min(await measure('unknown'), await measure('unknown'), await measure('unknown'))
      assert.ok(unknown > 0.8 * known, `${unknown} ms for an unknown user, ${known} ms for a known one`)
    } finally {
      await slow.close()
    }
  })

  it('says that the directory is unavailable, and passwords of the clinician table still work (SIGNIN-14)', async () => {
    const down = await openServer({ url: 'ldap://127.0.0.1:1' })
    assert.equal(await logIn('ada', 'password of ada', down), '503 unreachable')
    assert.equal((await down.openBrowser().login()).headers.location, '/portal')
    writeFileSync(join(folder, 'wrong'), 'wrong')
    const refused = await openServer({ bindPasswordFile: join(folder, 'wrong') })
    assert.equal(await logIn('ada', 'password of ada', refused), '503 unreachable')
  })

  it('trusts the certificate authority of tls-ca, and no other', async () => {
    const certificate = makeCertificate()
    const secure = await startDirectory(ENTRIES, certificate)
    const tlsCa = join(folder, 'ca.pem')
    writeFileSync(tlsCa, makeCertificate().cert)
    const logInSecurely = async (changes: Partial<LdapProvider>) =>
      logIn('ada', 'password of ada', await openServer({ url: secure.url, ...changes }))
    try {
      assert.equal(await logInSecurely({}), '503 unreachable')
      assert.equal(await logInSecurely({ tlsCa }), '503 unreachable')
      assert.deepEqual(secure.binds, [])
      writeFileSync(tlsCa, certificate.cert)
      assert.equal(await logInSecurely({ tlsCa }), '302 /portal')
      assert.match(await logIn('ada', 'wrong', await openServer({ url: secure.url, tlsCa })), /^401/)
    } finally {
      await secure.close()
    }
  })
})
