/** The accounts of an installation off loopback, from its first administrator on. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { computeTotpCode } from '../../src/auth/users/factors/totp.ts'
import { HttpUser } from '../support/http-user.ts'
import { newPlace, type Place, runProgram, type Started, startProcess } from '../support/started.ts'

const FIRST = 'the first long sentence'
const SECOND = 'the second long sentence'
const THIRD = 'the third long sentence'
/** One of the list of passwords that many people use. */
const COMMON = 'mailcreated5240'

let place: Place
let servers: Started
before(async () => {
  place = await newPlace({
    SMART_BIND: '0.0.0.0',
    SMART_SECRET: 'a secret of more than 32 characters',
    SMART_ALLOW_HTTP: 'true',
    SMART_CLIENT_LAUNCH_URL: 'http://localhost/launch',
    SMART_LOGIN_SECOND_FACTOR: 'administrators',
    SMART_WORKERS: '1',
  })
})
after(() => {
  servers?.child.kill('SIGKILL')
  place?.remove()
})

class Person extends HttpUser {
  constructor() {
    super({
      settings: { issuerUrl: place.authUrl, appUrl: place.appUrl },
      user: { username: '', password: '', name: '' },
    })
  }

  get(path: string): Promise<Response> {
    return this.request(`${place.authUrl}${path}`)
  }

  /** Sends a form: the status and what follows it. */
  async send(path: string, fields: Readonly<Record<string, string>>) {
    const response = await this.request(`${place.authUrl}${path}`, {
      method: 'POST',
      body: new URLSearchParams(fields),
    })
    return {
      status: response.status,
      location: response.headers.get('location'),
      text: await response.text(),
    }
  }

  logIn(username: string, password: string) {
    return this.send('/login', { username, password })
  }
}

describe('the people of a new installation', () => {
  const phone = { key: '' }
  const codes: string[] = []

  it('get their first administrator by the command of the guide, before the first start (CLI-1)', async () => {
    const args = ['clinician', 'add', '--username', 'grace', '--display-name', 'Grace H', '--no-records']
    const weak = await runProgram([...args, '--admin'], place, COMMON)
    assert.equal(weak.exitCode, 2, weak.stderr)
    assert.match(
      weak.stderr,
      /^Cannot add clinician grace: use another password, because many people use this one$/m,
    )
    const listed = await runProgram(['clinician', 'list'], place)
    assert.doesNotMatch(listed.stdout, /grace/)
    const added = await runProgram([...args, '--admin'], place, FIRST)
    assert.equal(added.exitCode, 0, added.stderr)
    assert.match(added.stdout, /^The user chooses another password at the next sign-in$/m)
  })

  it('start the servers, which make no other account', async () => {
    servers = startProcess(['start'], place)
    await servers.printed(/is running/)
    assert.doesNotMatch(servers.stdout(), /shown only once/)
    const { stdout } = await runProgram(['clinician', 'list'], place)
    assert.deepEqual(
      [...stdout.matchAll(/^(?!USERNAME)(\w+) /gm)].map(([, name]) => name),
      ['grace'],
    )
  })

  it('choose a password and set up a second factor at the first sign-in (FACTOR-1)', async () => {
    const grace = new Person()
    assert.equal((await grace.logIn('grace', FIRST)).location, '/login/new-password')
    const weak = await grace.send('/login/new-password', { next: COMMON, again: COMMON })
    assert.equal(weak.status, 400)
    assert.match(weak.text, /many people use this one/)
    const chosen = await grace.send('/login/new-password', { next: SECOND, again: SECOND })
    assert.equal(chosen.location, '/login/enrol')
    const page = await (await grace.get('/login/enrol')).text()
    phone.key = /url--block">([A-Z2-7 ]+)</.exec(page)?.[1]?.replaceAll(' ', '') ?? ''
    const enrolment = /name="enrolment" value="([^"]+)"/.exec(page)?.[1] ?? ''
    const code = computeTotpCode(phone.key, Math.floor(Date.now() / 30_000))
    const added = await grace.send('/login/enrol', { enrolment, code })
    assert.equal(added.status, 200, added.text)
    codes.push(...(/<pre class="codes">([^<]*)</.exec(added.text)?.[1]?.split('\n') ?? []))
    assert.equal((await grace.get('/admin')).status, 200)
  })

  it('sign in with the second factor, and change the password (FACTOR-2)', async () => {
    const grace = new Person()
    assert.equal((await grace.logIn('grace', SECOND)).location, '/login/second-factor')
    assert.equal((await grace.get('/admin')).status, 302)
    assert.equal((await grace.send('/login/second-factor', { code: 'wrong-code' })).status, 401)
    assert.equal((await grace.send('/login/second-factor', { code: codes[0] ?? '' })).status, 200)
    assert.equal((await grace.get('/admin')).status, 200)
    const weak = await grace.send('/account/password', { current: SECOND, next: COMMON, again: COMMON })
    assert.equal(weak.status, 400)
    const changed = await grace.send('/account/password', { current: SECOND, next: THIRD, again: THIRD })
    assert.equal(changed.status, 303, changed.text)
    assert.equal((await new Person().logIn('grace', SECOND)).status, 401)
    assert.equal((await new Person().logIn('grace', THIRD)).location, '/login/second-factor')
  })

  it('get an activation link, which works once', async () => {
    const args = ['clinician', 'add', '--username', 'linus', '--display-name', 'Lin U', '--no-records']
    const { stdout } = await runProgram([...args, '--activation-link'], place)
    const link = /http\S+\/login\/activate#\S+/.exec(stdout)?.[0] ?? assert.fail(stdout)
    const linus = new Person()
    assert.equal((await linus.get('/login/activate')).status, 200)
    assert.match((await linus.send('/login/activate', { link })).text, /name="next"/)
    assert.equal((await linus.send('/login/activate', { link, next: COMMON, again: COMMON })).status, 400)
    assert.equal((await linus.send('/login/activate', { link, next: FIRST, again: FIRST })).status, 200)
    assert.equal((await linus.send('/login/activate', { link, next: SECOND, again: SECOND })).status, 400)
    assert.match((await linus.logIn('linus', FIRST)).location ?? '', /^\/(account|portal|home|admin)/)
  })

  it('who lost the second factor set up another one (FACTOR-1)', async () => {
    const reset = await runProgram(['clinician', 'reset-second-factor', '--username', 'grace'], place)
    assert.equal(reset.exitCode, 0, reset.stderr)
    assert.equal((await new Person().logIn('grace', THIRD)).location, '/login/enrol')
  })

  it('leave no password and no secret of the second factor in the log', async () => {
    servers.child.kill('SIGTERM')
    assert.equal((await servers.ended()).exitCode, 0)
    const log = servers.stdout() + servers.stderr()
    for (const secret of [FIRST, SECOND, THIRD, phone.key]) assert.ok(!log.includes(secret))
  })
})
