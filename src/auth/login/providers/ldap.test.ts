import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { makeCertificate } from '../../../../test/support/certificate.ts'
import { SERVICE, startDirectory } from '../../../../test/support/directory.ts'
import type { LdapProvider } from '../../../config/index.ts'
import type { TestAuthServer } from '../../testing/test-auth-server.ts'
import { describeSignIn, openSignInServer } from '../../testing/test-sign-in.ts'
import { openTestStore } from '../../testing/test-store.ts'

const PEOPLE = 'ou=people,dc=ehr,dc=example'
const makeUser = (uid: string, number: string) => ({
  dn: `uid=${uid},${PEOPLE}`,
  password: `password of ${uid}`,
  attributes: {
    ...{
      objectclass: 'inetOrgPerson',
      uid,
      cn: `Dr. ${uid}`,
      employeenumber: number,
      employeeNumber: number,
    },
    ...{ entryUUID: `id-of-${uid}`, entryuuid: `id-of-${uid}` },
  },
})
const ENTRIES = [
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
    ...{ kind: 'ldap', id: 'staff', name: 'Hospital account', url: directory.url, tlsCa: undefined },
    ...{ bindDn: SERVICE.dn, bindPasswordFile: join(folder, 'password'), baseDn: 'dc=ehr,dc=example' },
    ...{ userFilter: '(&(objectClass=inetOrgPerson)(uid={username}))', groupFilter: '(member={dn})' },
    ...{ usernameClaim: 'uid', displayNameClaim: 'cn', provision: true },
    fhirUser: { kind: 'template', template: 'Practitioner/{employeeNumber}' },
    ...{ allow: { claim: 'groups', values: ['clinicians'] }, admin: undefined },
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

  it('shows a form of its own, beside that of the clinician table', async () => {
    const browser = auth.openBrowser()
    assert.match((await browser.get('/login')).body, /href="\/login\?provider=staff">Hospital account</)
    const { body } = await browser.get('/login?provider=staff')
    assert.match(body, /Use your Hospital account\./)
    assert.match(body, /<input type="hidden" name="provider" value="staff">/)
    assert.match(body, /href="\/login">Clinician account</)
  })

  it('logs a user in with the attributes as claims', async () => {
    const browser = auth.openBrowser()
    const form = { username: 'ada', password: 'password of ada', provider: 'staff' }
    assert.equal((await browser.post('/login', form)).headers.location, '/portal')
    assert.match((await browser.get('/portal')).body, /Dr\. ada/)
    const link = await auth.store.db.selectFrom('clinician_link').selectAll().executeTakeFirstOrThrow()
    assert.deepEqual([link.issuer, link.subject], ['ldap:staff', 'id-of-ada'])
    assert.equal(await logIn('ada', 'password of ada'), '302 /portal')
  })

  it('needs the group, the right password and exactly one entry', async () => {
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

  it('never binds with an empty password, and a username cannot change the filter', async () => {
    const before = directory.binds.length
    assert.match(await logIn('ada', ''), /^401/)
    assert.equal(directory.binds.length, before)
    for (const username of ['*', 'ada)(uid=*', 'a*', 'ada)(|(uid=grace', '\\61da'])
      assert.match(await logIn(username, 'password of ada'), /^401/, username)
  })

  it('takes as many binds for an unknown username as for a wrong password', async () => {
    const count = async (username: string) => {
      const before = directory.binds.length
      await logIn(username, 'wrong')
      return directory.binds.length - before
    }
    assert.equal(await count('unknown'), await count('grace'))
  })

  it('limits failures', async () => {
    const limited = await openServer()
    for (let at = 0; at < 10; at++) assert.match(await logIn('ada', 'wrong', limited), /^401/)
    assert.match(await logIn('ada', 'password of ada', limited), /^429/)
    assert.match(await logIn('grace', 'password of grace', limited), /^403/)
  })

  it('says that the directory is unavailable, and passwords of the clinician table still work', async () => {
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
