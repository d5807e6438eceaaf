import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { TestAuthServer } from '../src/auth/testing/test-auth-server.ts'
import { openStore, sha256 } from '../src/store/index.ts'
import { sallyport } from './support/command-line.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const url = `sqlite:${join(folder, 'sallyport.db')}`

/** A list with a filter that is not known, or whose value is not: on a page, in the API and as a command. */
const WRONG = [
  ['/audit?event=login', '/audit?event=login', ['audit', '--event', 'login'], /kind, result, user/],
  ['/audit?kind=sign-in', '/audit?kind=sign-in', ['audit', '--kind', 'sign-in'], /fhir, login, logout/],
  ['/audit?result=yes', '/audit?outcome=yes', ['audit', '--outcome', 'yes'], /allowed, refused/],
  ['/audit?since=monday', '/audit?since=monday', ['audit', '--since', 'monday'], /a day, such as/],
  ['/audit?kind=login&kind=api', '/audit?kind=login&kind=api', undefined, /fhir, login, logout/],
  [
    '/apps?state=new',
    '/clients?state=new',
    ['client', 'list', '--state', 'new'],
    /all, unverified, disabled/,
  ],
  [
    '/apps?colour=red',
    '/clients?colour=red',
    ['client', 'list', '--colour', 'red'],
    /state, search, approved/,
  ],
  [
    '/clinicians?state=lost',
    '/clinicians?state=lost',
    ['clinician', 'list', '--state', 'lost'],
    /all, admin/,
  ],
  ['/clinicians?locked=1', '/clinicians?locked=1', ['clinician', 'list', '--locked', '1'], /true or false/],
  ['/access?colour=red', '/grants?colour=red', ['grant', 'list', '--colour', 'red'], /app, user, patient/],
] as const

describe('a filter that is not known', () => {
  let auth: TestAuthServer
  let token = ''
  before(async () => {
    auth = await TestAuthServer.open(await openStore(url))
    await auth.addUser('root', { admin: true })
    await auth.addClient({
      client_id: 'program',
      auth_method: 'client_secret',
      secret_hash: sha256('top'),
      scope: 'sallyport/admin',
    })
    const form = { grant_type: 'client_credentials', scope: 'sallyport/admin' }
    const secret = { client_id: 'program', client_secret: 'top' }
    token = (await auth.requestToken({ ...form, ...secret })).json().access_token
  })
  after(() => auth.store.close())

  for (const [page, api, command, known] of WRONG)
    it(`is refused with the known ones: ${page} (ADMIN-32)`, async () => {
      const shown = await (await auth.logIn('root')).get(`/admin${page}`)
      assert.equal(shown.statusCode, 400)
      assert.match(shown.body, /Nothing is shown\./)
      assert.match(shown.body, known)
      assert.doesNotMatch(shown.body, /<table/)
      const headers = { authorization: `Bearer ${token}` }
      assert.equal((await auth.openBrowser().get(`/admin/api${api}`, headers)).statusCode, 400)
      if (!command) return
      const done = await sallyport(command, { env: { SMART_DATABASE_URL: url } })
      assert.deepEqual([done.exitCode, done.stdout], [2, ''])
      assert.match(done.stderr, /^Cannot use --|^Unknown option/)
    })

  it('names a user by a part of the name for people only: a program may end what it lists', async () => {
    const { id } = await auth.findUser('root')
    await auth.logIn('root')
    const count = async (user: string) => {
      const headers = { authorization: `Bearer ${token}` }
      const found = await auth.openBrowser().get(`/admin/api/sign-ins?clinician_id=${user}`, headers)
      return found.json().items.length > 0
    }
    assert.deepEqual([await count(id), await count('root'), await count('roo')], [true, false, false])
    const env = { SMART_DATABASE_URL: url }
    assert.equal((await sallyport(['sign-in', 'list', '--user', 'roo'], { env })).exitCode, 0)
    const nobody = await sallyport(['sign-in', 'list', '--user', 'nobody'], { env })
    assert.deepEqual(
      [nobody.exitCode, nobody.stderr],
      [1, 'Cannot list sign-ins: no user is known as nobody\n'],
    )
  })

  it('is refused in a download too', async () => {
    const browser = await auth.logIn('root')
    for (const path of ['/users.csv?state=lost', '/access/export.csv?colour=red', '/audit/export.csv?kind=x'])
      assert.equal((await browser.get(`/admin${path}`)).statusCode, 400, path)
  })
})
