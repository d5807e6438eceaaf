import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { request } from 'node:http'
import { connect, createServer } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { after, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { sallyport } from './support/command-line.ts'
import { newPlace, type Place, PROCESS_ENV, type Started, startProcess } from './support/started.ts'

const RUNNING = /is running/
const ROOT = resolve(import.meta.dirname, '..')

/** A folder that is removed after the test, whatever its result. */
function places() {
  const made: Place[] = []
  const processes: Started[] = []
  after(() => {
    for (const { child } of processes) child.kill('SIGKILL')
    for (const place of made) place.remove()
  })
  return {
    place: async (env?: Readonly<Record<string, string>>) => {
      const place = await newPlace(env)
      made.push(place)
      return place
    },
    start: (place: Place, args: readonly string[] = [], program?: readonly string[]) => {
      const started = startProcess(['start', ...args], place, program)
      processes.push(started)
      return started
    },
  }
}

const status = async (url: string) => (await fetch(url)).status

const logIn = async ({ authUrl }: Place, username: string, password: string) => {
  const response = await fetch(`${authUrl}/login`, {
    method: 'POST',
    redirect: 'manual',
    body: new URLSearchParams({ username, password }),
  })
  return `${response.status} ${response.headers.get('location') ?? ''}`.trim()
}

/** A login whose body has not arrived in full: a request that runs until `finish` is called. */
function runningRequest({ authUrl }: Place) {
  const body = 'username=clinician&password=sallyport'
  const { promise: answer, resolve, reject } = Promise.withResolvers<number | undefined>()
  const sent = request(`${authUrl}/login`, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'content-length': body.length,
      expect: '100-continue',
    },
  })
  sent.on('response', response => resolve(response.resume().statusCode))
  sent.on('error', reject)
  // The server sends 100 Continue when it has read the headers: from then on the request is running.
  const begun = once(sent, 'continue').then(() => sent.write(body.slice(0, 10)))
  sent.flushHeaders()
  return { begun, answer, finish: () => sent.end(body.slice(10)) }
}

/** A request and SIGTERM that a process finds at the same moment. */
async function arrivesWithSignal({ child }: Started, port: number): Promise<string> {
  child.kill('SIGSTOP')
  const socket = connect(port, '127.0.0.1').setEncoding('utf8')
  await once(socket, 'connect')
  const sent = Promise.withResolvers<void>()
  socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', () => sent.resolve())
  await sent.promise
  child.kill('SIGTERM')
  child.kill('SIGCONT')
  return (await socket.toArray()).join('')
}

describe('npm start', () => {
  const { place, start } = places()

  it('starts all three servers, accepts commands, finishes requests after a repeated signal, and exits with 0 (SERVICE-1, START-1, START-5, CLI-1)', async () => {
    const here = await place()
    const started = start(here, [], ['npm', '--prefix', ROOT])
    await started.printed(RUNNING)
    assert.match(started.stdout(), /Creating 2 sample patients…\n.*is running/s)
    for (const text of [here.authUrl, here.fhirUrl, here.appUrl, 'clinician / sallyport', 'Ctrl-C']) {
      assert.ok(started.stdout().includes(text), text)
    }
    for (const url of [here.authUrl, new URL(here.fhirUrl).origin, here.appUrl]) {
      assert.equal(await status(`${url}/healthz`), 200)
    }
    assert.equal(await logIn(here, 'clinician', 'sallyport'), '302 /portal')

    const added = await sallyport(
      ['clinician', 'add', '--username', 'ada', '--display-name', 'Dr. Ada Byron', '--fhir-user', 'p1'],
      { env: here.env, cwd: here.folder, stdin: 'correct horse' },
    )
    assert.equal(added.exitCode, 0, added.stderr)
    assert.equal(await logIn(here, 'ada', 'correct horse'), '302 /portal')

    const running = runningRequest(here)
    await running.begun
    started.child.kill('SIGTERM')
    started.child.kill('SIGINT')
    await started.printed(/Stopping/)
    running.finish()
    assert.equal(await running.answer, 302)
    assert.deepEqual(await started.ended(), { exitCode: 0, signal: null })
    assert.equal(started.stderr(), '')
    await assert.rejects(fetch(`${here.authUrl}/healthz`))
  })
})

describe('sallyport start', () => {
  const { place, start } = places()

  it('keeps clients, clinicians, keys and patients after a kill -9', async () => {
    const here = await place()
    const first = start(here)
    await first.printed(RUNNING)
    const keys = async () => (await fetch(`${here.authUrl}/oauth2/jwks`)).json()
    const before = await keys()
    await sallyport(
      [
        'client',
        'add',
        '--id',
        'x',
        '--public',
        '--scope',
        'openid',
        '--redirect-uri',
        'https://a.example/cb',
      ],
      {
        env: here.env,
        cwd: here.folder,
      },
    )
    first.child.kill('SIGKILL')
    await first.ended()

    const second = start(here)
    await second.printed(RUNNING)
    assert.doesNotMatch(second.stdout(), /Making/)
    assert.deepEqual(await keys(), before)
    assert.match((await sallyport(['client', 'list'], { env: here.env, cwd: here.folder })).stdout, /^x /m)
    assert.equal(await logIn(here, 'clinician', 'sallyport'), '302 /portal')
    for (const name of ['secret', 'sallyport.db', 'fhir.db']) {
      assert.equal(statSync(join(here.folder, 'data', name)).mode & 0o777, 0o600, name)
    }
    second.child.kill('SIGINT')
    assert.deepEqual(await second.ended(), { exitCode: 0, signal: null })
  })

  it('ends at once if a second signal arrives after a second (START-5)', async () => {
    const here = await place()
    const started = start(here, ['auth'])
    await started.printed(RUNNING)
    const running = runningRequest(here)
    running.answer.catch(() => {})
    await running.begun
    started.child.kill('SIGTERM')
    await started.printed(/Stopping/)
    const again = setInterval(() => started.child.kill('SIGTERM'), 300)
    const { exitCode, signal } = await started.ended()
    clearInterval(again)
    // A signal that arrives while Node is already on its way out ends the process by itself.
    assert.ok(exitCode === 1 || signal === 'SIGTERM', `${exitCode} ${signal}`)
  })

  it('off loopback, prints a random password that the first sign-in replaces, unless the setting sets it (LOGIN-3)', async () => {
    const bind = {
      SMART_BIND: '0.0.0.0',
      SMART_SECRET: 'a secret of more than 32 characters',
      SMART_ALLOW_HTTP: 'true',
      SMART_CLIENT_LAUNCH_URL: 'http://localhost/launch',
    }
    const random = await place(bind)
    const started = start(random, ['auth'])
    await started.printed(RUNNING)
    const [, password = ''] = /clinician \/ (\S+) \(shown only once\)/.exec(started.stdout()) ?? []
    assert.match(await logIn(random, 'clinician', password), /\/login\/new-password$/)
    assert.match(started.stderr(), /^Warning: SMART_LOGIN_SECOND_FACTOR=none: a password alone/m)
    const set = await place({ ...bind, SMART_SEED_CLINICIAN_PASSWORD: 'of the operator' })
    await start(set, ['auth']).printed(RUNNING)
    assert.match(await logIn(set, 'clinician', 'of the operator'), /\/portal$/)
  })

  it('starts the FHIR server alone, reports readiness only with a key set, and completes requests after the signal (SERVICE-2, START-2)', async () => {
    const here = await place()
    const started = start(here, ['fhir'])
    await started.printed(RUNNING)
    assert.doesNotMatch(started.stdout(), /Auth server|App server|Test login/)
    const origin = new URL(here.fhirUrl).origin
    assert.equal(await status(`${origin}/healthz`), 200)
    const ready = await fetch(`${origin}/readyz`)
    assert.equal(ready.status, 503)
    assert.match(await ready.text(), /key set is not yet available/)
    assert.equal(await status(`${here.fhirUrl}/Patient`), 401)
    await assert.rejects(fetch(`${here.authUrl}/healthz`))
    const answer = await arrivesWithSignal(started, Number(new URL(origin).port))
    assert.match(answer, /^HTTP\/1\.1 200 /)
    assert.equal((await started.ended()).exitCode, 0)
  })

  it('serves requests and reports draining during the drain delay, so that a proxy loses no request (START-6)', async () => {
    const here = await place({ SMART_DRAIN_DELAY_SECONDS: '1' })
    const started = start(here, ['app'])
    await started.printed(RUNNING)
    const ask = (path: string) => fetch(`${here.appUrl}${path}`)
    assert.equal((await ask('/readyz')).status, 200)
    started.child.kill('SIGTERM')
    await started.printed(/Stopping/)
    const ready = await ask('/readyz')
    assert.deepEqual([ready.status, await ready.json()], [503, { status: 'draining', checks: [] }])
    for (let count = 0; count < 20; count++) assert.equal((await ask('/healthz')).status, 200)
    assert.deepEqual(await started.ended(), { exitCode: 0, signal: null })
  })

  const fails = async (here: Place, line: RegExp, args: readonly string[] = []) => {
    const started = start(here, args)
    assert.deepEqual(await started.ended(), { exitCode: 1, signal: null })
    assert.match(started.stderr(), line)
    assert.doesNotMatch(started.stderr(), /\n./)
    assert.doesNotMatch(started.stdout(), RUNNING)
    return started
  }

  it('names a port that is in use, creates nothing, and leaves no server running (START-7)', async () => {
    const here = await place()
    const port = Number(new URL(here.appUrl).port)
    const other = createServer().listen(port, '127.0.0.1')
    const started = await fails(
      here,
      new RegExp(
        `^Cannot start the app server on port ${port} of .*: the port is in use\\. To change the port, set SMART_APP_URL, or SMART_APP_PORT behind a proxy; .* SMART_BIND\\n$`,
      ),
    )
    assert.doesNotMatch(started.stdout(), /sample patient/)
    other.close()
  })

  it('prints nothing for a script that it cannot serve (START-11)', async () => {
    const here = await place({ SMART_BIND: '192.0.2.1' })
    const started = start(here, ['auth', '--ready'])
    assert.deepEqual([(await started.ended()).exitCode, started.stdout()], [1, ''])
  })

  it('stops each server that has another secret than the database, with one line', async () => {
    const here = await place()
    await sallyport(['keys', 'rotate'], here)
    const other = { ...here, env: { ...here.env, SMART_SECRET: 'another secret, which is long enough' } }
    for (const name of ['auth', 'fhir', 'app'])
      await fails(other, /^Cannot start: SMART_SECRET does not decrypt the signing keys/, [name])
  })

  it('names an unusable data folder (START-7)', async () => {
    const here = await place()
    writeFileSync(join(here.folder, 'data'), 'not a folder')
    await fails(here, /^Cannot use data folder .*data \(SMART_DATA_DIR\): it is not a folder\n$/)
  })

  it('names a file with FHIR data that is not a database', async () => {
    const here = await place()
    mkdirSync(join(here.folder, 'data'))
    writeFileSync(join(here.folder, 'data', 'fhir.db'), 'this is no database, however long it is made')
    await fails(here, /^Cannot open FHIR data in \S*fhir\.db: file is not a database\n$/, ['fhir'])
  })

  it('logs no password of the test login', async () => {
    const here = await place({
      SMART_LOG_LEVEL: 'trace',
      SMART_SEED_CLINICIAN_PASSWORD: 'a-password-that-was-set',
    })
    const started = start(here, ['auth'])
    await started.printed(RUNNING)
    assert.equal(await logIn(here, 'clinician', 'a-password-that-was-set'), '302 /portal')
    started.child.kill('SIGTERM')
    await started.ended()
    assert.match(started.stdout(), /"requestId":/)
    assert.doesNotMatch(started.stdout(), /a-password-that-was-set/)
    assert.doesNotMatch(
      started.stdout(),
      new RegExp(readFileSync(join(here.folder, 'data', 'secret'), 'utf8').trim()),
    )
  })
})

describe('docs/tutorials/ci.md', () => {
  const { place } = places()

  /** A repository with files of the tutorials, in which Sallyport is installed. */
  async function makeRepository(files: Readonly<Record<string, string>>) {
    const { folder } = await place()
    const temporary = join(folder, 'tmp')
    for (const name of ['ci', 'tmp', 'node_modules/.bin']) mkdirSync(join(folder, name), { recursive: true })
    for (const [file, tutorial] of Object.entries(files))
      writeFileSync(join(folder, file), readBlock(tutorial, file))
    symlinkSync(ROOT, join(folder, 'node_modules/sallyport'))
    const command = join(folder, 'node_modules/.bin/sallyport')
    const main = join(ROOT, 'src/cli/main.ts')
    writeFileSync(command, `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`, { mode: 0o755 })
    const env = {
      ...PROCESS_ENV,
      HOME: folder,
      TMPDIR: temporary,
      // Log lines must not come before what a script reads.
      SMART_LOG_LEVEL: 'info',
      SMART_SAMPLE_PATIENTS: '2',
    }
    const run = (program: string, args: readonly string[], more: Readonly<Record<string, string>> = {}) =>
      promisify(execFile)(program, args, { cwd: folder, env: { ...env, ...more } }).catch(error => {
        // A test run prints to stdout what failed. The error stays, because tests look at its code.
        error.message += `\n${error.stdout}`
        throw error
      })
    return { folder, temporary, command, run }
  }

  /** The block of code that follows the name of its file. */
  function readBlock(tutorial: string, file: string): string {
    const page = readFileSync(join(ROOT, 'docs/tutorials', tutorial), 'utf8')
    const [, after = ''] = page.split(new RegExp(`(?:[Ii]n )?\`${file}\`(?::| [a-z][^\n]*:)\n`))
    return /^```\w+\n(.*?)^```$/ms.exec(after)?.[1] ?? assert.fail(`no ${file}`)
  }

  it('tests requests on servers that end with the test run and leave nothing behind (PACKAGE-8)', async () => {
    const { temporary, run } = await makeRepository({ 'ci/requests.test.mjs': 'ci.md' })
    const { stdout } = await run(process.execPath, ['--test', 'ci/requests.test.mjs'])
    assert.match(stdout, /pass 2\n.*fail 0\n/s)
    assert.deepEqual(readdirSync(temporary), [])
  })

  it('starts the servers for all test files of another test runner (PACKAGE-8)', async () => {
    const { temporary, folder, run } = await makeRepository({})
    const page = readFileSync(join(ROOT, 'docs/tutorials/ci.md'), 'utf8')
    const [, setup = '', file = ''] =
      /^### With Vitest.*?^```js\n(.*?)^```$.*?^```js\n(.*?)^```$/ms.exec(page) ?? []
    writeFileSync(join(folder, 'setup.mjs'), setup)
    writeFileSync(join(folder, 'file.mjs'), `${file}\nconsole.log(token.slice(0, 2))`)
    const program = `const stop = await (await import('./setup.mjs')).default()
      // Test runners use other processes for the files.
      const { spawnSync } = await import('node:child_process')
      spawnSync(process.execPath, ['file.mjs'], { stdio: 'inherit' })
      await stop()`
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program])
    assert.equal(stdout, 'ey\n')
    assert.deepEqual(readdirSync(temporary), [])
  })

  const SCRIPT = { 'ci/test.sh': 'ci.md' }

  it('tests by a script on ephemeral servers, which end with it and leave nothing behind (START-12, START-13)', async () => {
    const { command, temporary, run } = await makeRepository(SCRIPT)
    const { stdout, stderr } = await run(command, ['start', '--ephemeral', '--run', 'bash ci/test.sh'])
    assert.equal(stdout, 'client_id: my-app\nThe app can read the conditions.\n')
    assert.match(stderr, /"level":"info".*\nStopped\.\n$/s)
    assert.deepEqual(readdirSync(temporary), [])
  })

  it('prints what was refused and why if its command fails (START-14)', async () => {
    const { command, run, folder } = await makeRepository(SCRIPT)
    const script = readFileSync(join(folder, 'ci/test.sh'), 'utf8')
    const get =
      'curl -s -o /dev/null -H "Authorization: Bearer $TOKEN" "$FHIR_URL/Observation?patient=patient-1"'
    writeFileSync(join(folder, 'ci/fails.sh'), `${script}\n${get}\n${get}\necho $TOKEN; exit 7\n`)
    const failed = run(command, ['start', '--ephemeral', '--run', 'bash ci/fails.sh'])
    const { code, stderr, stdout } = await failed.then(
      () => assert.fail('no failure'),
      error => error,
    )
    assert.equal(code, 7)
    const [, printed = ''] = String(stderr).split('Stopped.\n')
    assert.match(
      printed,
      /^\nProblems while the command ran:\n\S+Z {2}2 times: 403 GET Observation\?patient=\S+ \(my-app\)\n {2}\S.*patient\/Observation\..*\n {2}Scopes of the token: \S.*\n {2}What to do: \S.*\n\n$/,
    )
    const token = String(stdout).trim().split('\n').at(-1) ?? ''
    assert.match(token, /^ey/)
    assert.ok(!String(stderr).includes(token))
  })

  it('names to its command the servers that run, and a free port (START-13)', async () => {
    const { command, run } = await makeRepository({})
    const print = `"${process.execPath}" -p '[!!process.env.FHIR_URL, process.env.APP_URL, process.env.FREE_PORT > 1023]'`
    const { stdout } = await run(command, ['start', 'auth', 'fhir', '--ephemeral', '--run', print])
    assert.equal(stdout, '[ true, undefined, true ]\n')
  })

  it('leads its command to the data of this start, whatever the variables of the caller name (START-13)', async () => {
    const { command, run } = await makeRepository({})
    const callers = { SMART_DATA_DIR: '/callers/data', SMART_DATABASE_URL: 'sqlite:/callers/sallyport.db' }
    const print = `"${process.execPath}" -p '[process.env.SMART_DATA_DIR, process.env.SMART_DATABASE_URL].join()'`
    const { stdout } = await run(command, ['start', 'auth', '--ephemeral', '--run', print], callers)
    assert.match(stdout, /^\S+data,sqlite:\S+sallyport\.db\n$/)
    assert.doesNotMatch(stdout, /callers/)
  })

  it('keeps the URL of a FHIR server that it does not start (START-12)', async () => {
    const { command, run } = await makeRepository({})
    const other = { SMART_FHIR_BASE_URL: 'http://localhost:9/fhir' }
    const args = ['start', 'auth', '--ephemeral', '--run', `"${process.execPath}" -p 'process.env.FHIR_URL'`]
    assert.equal((await run(command, args, other)).stdout, 'http://localhost:9/fhir\n')
  })

  it('exits with the code of its command (START-13)', async () => {
    const { command, run } = await makeRepository({})
    await assert.rejects(run(command, ['start', '--ephemeral', '--run', 'exit 7']), { code: 7 })
  })

  it('stops its command before the servers at SIGTERM (START-13)', async () => {
    const { command, folder } = await makeRepository({})
    const program = `exec "${process.execPath}" -e 'console.log("begun"); setInterval(() => {}, 1000)'`
    const child = spawn(command, ['start', '--ephemeral', '--run', program], {
      cwd: folder,
      env: { ...PROCESS_ENV, HOME: folder, SMART_SAMPLE_PATIENTS: '0' },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    await once(child.stdout, 'data')
    child.kill('SIGTERM')
    assert.deepEqual(await once(child, 'close'), [1, null])
  })

  it('tests the launch of a server and of a page, at the same time (PACKAGE-8)', async () => {
    const { folder, run } = await makeRepository({
      'ci/server-launch.test.mjs': 'ci.md',
      'ci/launch.test.mjs': 'ci.md',
      'launch.html': 'browser-app.md',
      'index.html': 'browser-app.md',
      'serve.mjs': 'browser-app.md',
    })
    const library = 'node_modules/fhirclient/build/fhir-client.pure.min.js'
    copyFileSync(join(ROOT, library), join(folder, 'fhir-client.pure.min.js'))
    // The browser of these tests, as Playwright's.
    mkdirSync(join(folder, 'node_modules/playwright'))
    writeFileSync(
      join(folder, 'node_modules/playwright/index.mjs'),
      `import { launchBrowser } from '${join(ROOT, 'test/support/browser.ts')}'
       export const chromium = { launch: launchBrowser }`,
    )
    writeFileSync(
      join(folder, 'node_modules/playwright/package.json'),
      '{ "name": "playwright", "exports": "./index.mjs" }',
    )
    const { stdout } = await run(
      process.execPath,
      ['--test', 'ci/server-launch.test.mjs', 'ci/launch.test.mjs'],
      { HOME: process.env.HOME ?? '' },
    )
    assert.match(stdout, /pass 3\n.*fail 0\n/s)
  })

  it('names servers that are ready when they print their URLs, for scripts that stop them (START-11, START-12)', async () => {
    const { folder, temporary, run } = await makeRepository(SCRIPT)
    const script = `set -euo pipefail
      exec 3< <(exec node_modules/.bin/sallyport start --ephemeral --ready 2> sallyport.log)
      sallyport=$!
      trap 'kill $sallyport; wait $sallyport || true' EXIT
      read -r urls <&3
      export FHIR_URL=$(node -p 'JSON.parse(process.argv[1]).fhir' "$urls")
      export SMART_CONFIG=$(sed -n 's/.*SMART_CONFIG=//p' sallyport.log)
      FREE_PORT=3000 bash ci/test.sh`
    const { stdout } = await run('bash', ['-c', script])
    assert.equal(stdout, 'client_id: my-app\nThe app can read the conditions.\n')
    const log = readFileSync(join(folder, 'sallyport.log'), 'utf8')
    assert.match(log, /"level":"info".*\nStopped\.\n$/s)
    const [, settingsFile = ''] = /SMART_CONFIG=(.*)/.exec(log) ?? []
    assert.ok(settingsFile.startsWith(temporary))
    assert.equal(existsSync(dirname(settingsFile)), false)
  })
})
