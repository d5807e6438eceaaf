import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { HttpUser } from '../../test/support/http-user.ts'
import { loadTestCommands } from '../auth/index.ts'
import {
  type App,
  connectSallyport,
  type LaunchOptions,
  type Sallyport,
  type Simulation,
  startSallyport,
} from './index.ts'
import { SIMULATIONS } from './simulations.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-testing-'))
after(() => rmSync(folder, { recursive: true, force: true }))

describe('startSallyport', () => {
  let sallyport: Sallyport
  before(async () => {
    const file = join(folder, 'more.ndjson')
    writeFileSync(file, '{"resourceType":"Patient","id":"mine","name":[{"family":"Added"}]}')
    sallyport = await startSallyport({ settings: { SMART_SAMPLE_PATIENTS: '30' }, import: [file] })
    await sallyport.addApp({
      id: 'my-app',
      redirectUris: ['http://localhost:3000/callback'],
      launchUrl: 'http://localhost:3000/launch',
      scope: 'launch patient/Patient.rs',
    })
  })
  after(() => sallyport.stop())

  const get = async (path: string, token: string) =>
    (await fetch(`${sallyport.fhirUrl}/${path}`, { headers: { authorization: `Bearer ${token}` } })).status

  it('imports resources, and gives tokens for a patient (PACKAGE-8)', async () => {
    const token = await sallyport.token({ patient: 'mine' })
    assert.equal(await get('Patient/mine', token), 200)
    assert.equal(await get('Patient/patient-1', token), 403)
    const problem = (await sallyport.problems()).at(-1)
    assert.deepEqual(
      [problem?.status, problem?.request, problem?.app],
      [403, 'GET Patient/patient-1', 'my-app'],
    )
    assert.match(
      `${problem?.cause} ${problem?.action}`,
      /The token is for Patient\/mine, but the request asks for Patient\/patient-1\. \S/,
    )
  })

  it('lists the problems of one app, or since a time (PACKAGE-8)', async () => {
    assert.equal(await get('Patient/patient-2', await sallyport.token({ patient: 'mine' })), 403)
    assert.deepEqual((await sallyport.problems({ app: 'my-app', since: '1h' })).at(-1)?.status, 403)
    assert.deepEqual(await sallyport.problems({ app: 'another' }), [])
    assert.deepEqual(await sallyport.problems({ since: new Date(Date.now() + 60_000) }), [])
    const wrong: object = { ap: 'my-app' }
    await assert.rejects(
      sallyport.problems(wrong),
      /^TypeError: problems: unknown option ap: did you mean app\?$/,
    )
    await assert.rejects(
      sallyport.problems({ since: 'noon' }),
      /^Error: problems: Cannot use since: expected 90s/,
    )
  })

  it('gives no token with fewer scopes than were asked for (PACKAGE-8)', async () => {
    await assert.rejects(
      sallyport.token({ patient: 'mine', scope: 'patient/Patient.rs patient/Observation.rs' }),
      /Not granted as requested: patient\/Observation\.rs/,
    )
  })

  it('says in its own words what is wrong (PACKAGE-8)', async () => {
    await assert.rejects(
      sallyport.token({ patient: 'nobody' }),
      /^Error: token: Cannot find Patient\/nobody in \S+\. Set patient, for example mine \(Added\), /,
    )
    await assert.rejects(
      sallyport.token({ patient: 'mine', encounter: 'none' }),
      /^Error: token: Cannot find Encounter\/none of Patient\/mine in \S+\. Set encounter to /,
    )
    await assert.rejects(sallyport.token(), /^Error: token: .* needs a patient\. Set patient, for example /)
    await assert.rejects(
      sallyport.addApp({ id: 'b', scope: 'openid', redirectUris: ['nowhere'] }),
      /^Error: addApp: Cannot use redirectUris nowhere: /,
    )
  })

  it('registers apps with a secret or with keys (PACKAGE-8)', async () => {
    const redirectUris = ['http://localhost:3000/callback']
    const { id, secret = '' } = await sallyport.addApp({
      id: 'server-app',
      name: 'Server app',
      scope: 'openid',
      redirectUris,
      secret: true,
    })
    assert.equal(id, 'server-app')
    const exchange = async (password: string) => {
      const response = await fetch(`${sallyport.authUrl}/oauth2/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(`${id}:${password}`)}` },
        body: new URLSearchParams({
          grant_type: 'authorization_code',
          code: 'none',
          code_verifier: 'v'.repeat(43),
          redirect_uri: redirectUris.join(),
        }),
      })
      return ((await response.json()) as { readonly error: string }).error
    }
    assert.deepEqual([await exchange(secret), await exchange('another')], ['invalid_grant', 'invalid_client'])
    const jwk = generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey.export({ format: 'jwk' })
    const jwks = { keys: [{ ...jwk, kid: 'one', alg: 'ES384' }] }
    assert.deepEqual(await sallyport.addApp({ id: 'service', scope: 'system/Patient.rs', jwks }), {
      id: 'service',
    })
    const shown = await sallyport.run('client', 'show', 'service')
    assert.match(shown, /authentication +keys\nkey +one \(EC\)/)
    assert.match(await sallyport.run('client', 'show', id), /name +Server app\n/)
    await assert.rejects(
      sallyport.addApp({ id: 'both', scope: 'openid', redirectUris, secret: true, jwks }),
      /^TypeError: addApp: expected only one of secret, jwks, jwksUrl$/,
    )
  })

  it('says what an import refused (PACKAGE-8)', async () => {
    const file = join(folder, 'wrong.ndjson')
    writeFileSync(file, '{"resourceType":"Patience","id":"x"}')
    await assert.rejects(
      sallyport.run('data', 'import', file),
      /sallyport data import .*wrong\.ndjson.*Not an R4 resource type/s,
    )
  })

  it('gives links that launch an app (PACKAGE-8)', async () => {
    const launched = await fetch(await sallyport.launch({ patient: 'mine', user: 'admin' }), {
      redirect: 'manual',
    })
    const url = new URL(launched.headers.get('location') ?? '')
    assert.deepEqual(
      [url.origin + url.pathname, url.searchParams.get('iss'), url.searchParams.has('launch')],
      ['http://localhost:3000/launch', sallyport.fhirUrl, true],
    )
  })

  it('gives no link that would launch nothing (PACKAGE-8)', async () => {
    const refused: readonly [options: LaunchOptions, message: RegExp][] = [
      [{ patient: 'nobody' }, /^Error: launch: The patient .*: nobody\. Use, for example, \w/],
      [{}, /^Error: launch: patient: expected the id of a Patient\.$/],
      [{ patient: 'mine', user: 'nobody' }, /^Error: launch: The username is unknown: nobody\.$/],
      [{ patient: 'mine', app: 'another' }, /^Error: launch: The client_id .*: another\.$/],
    ]
    const before = await sallyport.problems()
    for (const [options, message] of refused) await assert.rejects(sallyport.launch(options), message)
    assert.deepEqual(await sallyport.problems(), before)
    const launchUrl = 'http://localhost:3000/'
    await sallyport.launch({ patient: 'mine', app: 'another', launchUrl })
  })

  it('runs its commands in one process, also at the same time (PACKAGE-8)', async () => {
    const program = join(folder, 'note-process.mjs')
    const log = join(folder, 'processes.log')
    writeFileSync(
      program,
      `import { appendFileSync } from 'node:fs'; appendFileSync(${JSON.stringify(log)}, process.pid + '\\n')`,
    )
    const { NODE_OPTIONS = '' } = process.env
    process.env.NODE_OPTIONS = `${NODE_OPTIONS} --import=${pathToFileURL(program)}`
    const other = connectSallyport(sallyport.env)
    process.env.NODE_OPTIONS = NODE_OPTIONS
    const [token, problems, , failed] = await Promise.all([
      other.token({ patient: 'mine' }),
      other.problems(),
      other.addApp({ id: 'parallel', scope: 'openid', redirectUris: ['http://localhost:3000/'] }),
      other.run('client', 'show', 'nobody').catch(String),
    ])
    assert.equal(await get('Patient/mine', token), 200)
    assert(Array.isArray(problems))
    assert.match(failed, /^Error: sallyport client show nobody: .*nobody/)
    assert.match(await other.run('client', 'show', 'parallel'), /parallel/)
    assert.equal(new Set(readFileSync(log, 'utf8').trim().split('\n')).size, 1)
  })

  it('lets another process use the servers by the environment (PACKAGE-8)', async () => {
    const other = connectSallyport(sallyport.env)
    assert.deepEqual(
      [other.authUrl, other.fhirUrl, other.appUrl, other.freePort, other.users, other.env],
      [
        sallyport.authUrl,
        sallyport.fhirUrl,
        sallyport.appUrl,
        sallyport.freePort,
        sallyport.users,
        sallyport.env,
      ],
    )
    assert.equal(other.env.SMART_SAMPLE_PATIENTS, '30')
    assert.ok(!('stop' in other))
    // The first app that was added is the one of both.
    assert.equal(await get('Patient/mine', await other.token({ patient: 'mine' })), 200)
    assert.equal(await other.launch({ patient: 'mine' }), await sallyport.launch({ patient: 'mine' }))
    assert.throws(() => connectSallyport({}), /names no servers\. Start them with startSallyport/)
  })

  it('refuses options that do not exist, or are missing (PACKAGE-8)', async () => {
    const wrong: object = { patientId: 'mine' }
    await assert.rejects(
      sallyport.token(wrong),
      /^TypeError: token: unknown option patientId: did you mean patient\?$/,
    )
    await assert.rejects(sallyport.launch(wrong), /^TypeError: launch: unknown option patientId/)
    await assert.rejects(startSallyport(wrong), /^TypeError: startSallyport: unknown option patientId$/)
    const unscoped: object = { id: 'b', redirectUris: [] }
    await assert.rejects(sallyport.addApp(unscoped as App), /^TypeError: addApp: expected scope$/)
  })

  it('simulates the errors of the lab, and no others (PACKAGE-8)', async () => {
    assert.deepEqual(SIMULATIONS, (await loadTestCommands()).SIMULATIONS)
    const refused: readonly [name: string, message: RegExp][] = [
      ['fhir:50', /^TypeError: launch: cannot simulate fhir:50: did you mean fhir:500\?$/],
      ['access_denied', /: did you mean authorize:access_denied\?$/],
      ['zzz', /^TypeError: launch: cannot simulate zzz: expected one of authorize:invalid_request, /],
    ]
    for (const [name, message] of refused)
      await assert.rejects(sallyport.launch({ patient: 'mine', simulate: name as Simulation }), message)
  })

  it('names users who can sign in (PACKAGE-8)', async () => {
    assert.deepEqual(Object.keys(sallyport.users), ['clinician', 'admin', 'patient', 'mother'])
    for (const user of Object.values(sallyport.users)) {
      const settings = { issuerUrl: sallyport.authUrl, appUrl: sallyport.appUrl }
      await new HttpUser({ settings, user: { ...user, name: '' } }).signIn()
    }
  })

  it('refuses settings and servers that do not exist (PACKAGE-8)', async () => {
    await assert.rejects(
      startSallyport({ settings: { SMART_SAMPLE_PATIENT: '2' } }),
      /^TypeError: startSallyport: unknown setting SMART_SAMPLE_PATIENT: did you mean SMART_SAMPLE_PATIENTS\?$/,
    )
    const wrong: object = { servers: ['auht'] }
    await assert.rejects(
      startSallyport(wrong),
      /^TypeError: startSallyport: unknown server auht: did you mean auth\?$/,
    )
  })

  it('says why the servers did not start (PACKAGE-8)', async () => {
    await assert.rejects(
      startSallyport({ settings: { SMART_SAMPLE_PATIENTS: 'many' } }),
      /^Error: Sallyport did not start:\n.*SMART_SAMPLE_PATIENTS/s,
    )
  })

  for (const end of ['process.kill(process.pid, "SIGKILL")', ''])
    it(`stops the servers when its process ${end === '' ? 'has nothing more to do' : 'is killed'} (PACKAGE-8)`, async () => {
      const program = `
        import { writeSync } from 'node:fs'
        import { startSallyport } from '${join(import.meta.dirname, 'index.ts')}'
        const { env } = await startSallyport({ settings: { SMART_SAMPLE_PATIENTS: '0' } })
        writeSync(1, env.SMART_CONFIG)
        ${end}`
      const parent = spawn(process.execPath, ['--input-type=module', '-e', program], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const [text] = await once(parent.stdout, 'data')
      const settingsFile = String(text)
      assert.match(settingsFile, /sallyport\.yaml$/)
      // The start removes its folder at the very end.
      while (existsSync(settingsFile)) await pause(100)
    })
})
