import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { sallyport } from '../../../test/support/command-line.ts'
import { loadTestCommands } from '../../auth/index.ts'
import { decodeJwt } from '../../jwt/index.ts'
import { openStore, sha256 } from '../../store/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-lab-'))
// Nothing listens there.
const FHIR_URL = 'http://localhost:9/fhir'
const env = { SMART_DATA_DIR: folder, SMART_FHIR_BASE_URL: FHIR_URL }
const HINT = `If another FHIR server serves ${FHIR_URL}, start it first.`
const run = (line: string, more: Readonly<Record<string, string>> = {}, stdin = '') =>
  sallyport(line.match(/"[^"]*"|\S+/g)?.map(part => part.replaceAll('"', '')) ?? [], {
    cwd: folder,
    env: { ...env, ...more },
    stdin,
  })

const RESOURCES = [
  { resourceType: 'Patient', id: 'one' },
  { resourceType: 'Patient', id: 'two', name: [{ family: 'Doe', given: ['Jane'] }] },
  {
    resourceType: 'Encounter',
    id: 'visit',
    status: 'finished',
    subject: { reference: 'Patient/one' },
    class: { system: 'http://terminology.hl7.org/CodeSystem/v3-ActCode', code: 'AMB' },
  },
]

async function select<T>(use: (db: Awaited<ReturnType<typeof openStore>>['db']) => Promise<T>): Promise<T> {
  const store = await openStore(`sqlite:${join(folder, 'sallyport.db')}`)
  try {
    return await use(store.db)
  } finally {
    await store.close()
  }
}

const readTrail = async (launch: string) => (await run(`audit --launch ${launch}`)).stdout

before(async () => {
  writeFileSync(join(folder, 'some.ndjson'), RESOURCES.map(it => JSON.stringify(it)).join('\n'))
  assert.equal((await run('data import some.ndjson')).exitCode, 0)
  const registered = await run(
    'client add --id my-app --public --redirect-uri http://localhost:1/cb --launch-url http://localhost:1/launch' +
      ' --scope "launch openid fhirUser offline_access patient/Patient.rs patient/Observation.rs"',
  )
  assert.equal(registered.exitCode, 0, registered.stderr)
})
after(() => rmSync(folder, { recursive: true, force: true }))

describe('sallyport token', () => {
  it('prints a token of a real grant, and the audit trail names the command line (CLI-7)', async () => {
    const { stdout, stderr } = await run('token --client my-app --patient one --encounter visit')
    assert.equal(stderr, '')
    const { claims } = decodeJwt(stdout.trim()) ?? {}
    assert.equal(claims?.scope, 'launch openid fhirUser patient/Patient.rs patient/Observation.rs')
    assert.deepEqual([claims?.client_id, claims?.patient, claims?.encounter], ['my-app', 'one', 'visit'])
    const [launch = ''] = String(claims?.jti).split('.')
    const grant = await select(db =>
      db.selectFrom('grant').selectAll().where('id', '=', launch).executeTakeFirstOrThrow(),
    )
    assert.deepEqual([grant.client_id, grant.patient_id, grant.revoked_at], ['my-app', 'one', null])
    assert.match(await readTrail(launch), / {2}token {2}.* {2}Issued on the command line\n$/)
  })

  it('grants only scopes that the app is registered for, and lists the others (CLI-7)', async () => {
    const { stdout, stderr } = await run(
      'token --client my-app --patient one --scope "patient/Observation.rs patient/Condition.rs"',
    )
    assert.equal(decodeJwt(stdout.trim())?.claims.scope, 'patient/Observation.rs')
    assert.equal(stderr, 'Not granted as requested: patient/Condition.rs; granted: patient/Observation.rs\n')
  })

  for (const [line, reason] of [
    [
      'token --client no-app --patient one',
      'Cannot issue token: There is no app no-app, or the app is disabled: see client list.',
    ],
    [
      'token --client my-app --patient three',
      `Cannot find Patient/three in ${join(folder, 'fhir.db')}. ${HINT}`,
    ],
    [
      'token --client my-app --patient two --encounter visit',
      `Cannot find Encounter/visit of Patient/two in ${join(folder, 'fhir.db')}. ${HINT}`,
    ],
    [
      'token --client my-app --patient one --user nobody',
      'Cannot issue token: There is no user nobody, or the user is disabled or opens no records.',
    ],
    [
      'token --client my-app --patient one --scope user/Patient.rs',
      'Cannot issue token: None of the scopes can be granted to my-app. The app is registered for: launch openid fhirUser offline_access patient/Patient.rs patient/Observation.rs.',
    ],
  ] as const) {
    it(`refuses ${line}`, async () => {
      assert.deepEqual(await run(line), { exitCode: 1, stdout: '', stderr: `${reason}\n` })
    })
  }

  it('names patients and apps to choose from, if the patient or the app is missing (CLI-7)', async () => {
    assert.deepEqual(await run('token --client my-app'), {
      exitCode: 1,
      stdout: '',
      stderr:
        'Cannot issue token: The scope patient/Patient.rs needs a patient. Set --patient, for example one (Name not recorded), two (Doe, Jane).\n',
    })
    const { exitCode, stderr } = await run('token --patient one')
    assert.equal(exitCode, 2)
    assert.match(stderr, /^Missing --client, for example my-app, .*: see /)
    assert.match(
      (await run('launch --client my-app')).stderr,
      /^Cannot launch: A launch needs a patient\. Set --patient/,
    )
  })

  it('needs no patient if other scopes permit something (CLI-7)', async () => {
    const app = '--public --redirect-uri http://localhost:1/cb --scope "user/Patient.rs patient/Patient.rs"'
    await run(`client add --id for-users ${app}`)
    const { stdout } = await run('token --client for-users')
    assert.equal(decodeJwt(stdout.trim())?.claims.scope, 'user/Patient.rs')
  })

  it('does not look for the patient of another FHIR server, which it does not know (CLI-7)', async () => {
    const other = { SMART_DATA_DIR: join(folder, 'other'), SMART_FHIR_BASE_URL: 'http://localhost:3000/fhir' }
    const added = await run(
      'client add --id my-app --public --redirect-uri http://localhost:1/cb --scope patient/Patient.rs',
      other,
    )
    assert.equal(added.stderr, `New data folder: ${other.SMART_DATA_DIR}\n`)
    const { stdout, stderr } = await run('token --client my-app --patient 1', other)
    assert.equal(stderr, '')
    const { claims } = decodeJwt(stdout.trim()) ?? {}
    assert.deepEqual([claims?.patient, claims?.aud], ['1', other.SMART_FHIR_BASE_URL])
  })

  for (const [software, issued] of [
    ['Another', true],
    ['Sallyport', false],
  ] as const)
    it(`${issued ? 'issues' : 'refuses'} a token for a patient that fhir.db lacks if the FHIR server is ${software} (CLI-7)`, async () => {
      const server = createServer(
        (_request, response) => void response.end(`{"software":{"name":"${software}"}}`),
      )
      await once(server.listen(0, '127.0.0.1'), 'listening')
      const { port } = server.address() as AddressInfo
      try {
        const other = { SMART_FHIR_BASE_URL: `http://127.0.0.1:${port}/fhir` }
        const { stdout, stderr } = await run('token --client my-app --patient three', other)
        assert.equal(decodeJwt(stdout.trim())?.claims.patient, issued ? 'three' : undefined, stderr)
        const refusal = /^Cannot find Patient\/three in \S+fhir\.db\. Set --patient, for example one \(/
        assert.match(stderr, issued ? /^$/ : refusal)
      } finally {
        server.close()
      }
    })

  it('refuses a backend service', async () => {
    await run('client add --id service --jwks-url https://service.example/jwks --scope system/Patient.rs')
    assert.deepEqual(await run('token --client service'), {
      exitCode: 1,
      stdout: '',
      stderr:
        'Cannot issue token: The app service is a backend service: it gets tokens by client credentials.\n',
    })
  })

  it('works off loopback only if a setting names the risk, and on loopback not with SMART_LAB=false (CLI-7)', async () => {
    const line = 'token --client my-app --patient one'
    const refusal = async (more: Readonly<Record<string, string>>) => (await run(line, more)).stderr
    const deployed = {
      SMART_ISSUER_URL: 'https://auth.ehr.example',
      SMART_FHIR_BASE_URL: 'https://fhir.ehr.example/fhir',
      SMART_APP_URL: 'https://app.ehr.example',
      SMART_TRUST_PROXY: 'loopback',
      SMART_SECRET: readFileSync(join(folder, 'secret'), 'utf8').trim(),
    }
    const off = 'Cannot do this: it is for tests only, and SMART_LAB is not true\n'
    assert.equal(await refusal(deployed), off)
    assert.equal(await refusal({ SMART_LAB: 'false' }), off)
    const lab = { ...deployed, SMART_LAB: 'true' }
    assert.match(await refusal(lab), /needs SMART_LAB_EXPOSES_ALL_PATIENTS=true/)
    const named = { ...lab, SMART_LAB_EXPOSES_ALL_PATIENTS: 'true' }
    const clear = { SMART_APP_URL: 'http://app.ehr.example', SMART_ALLOW_HTTP: 'true' }
    assert.match(await refusal({ ...named, ...clear }), /SMART_APP_URL must be https/)
    assert.match(await refusal(named), /There is no user clinician/, 'the test clinician is for loopback')
    const add = 'clinician add --username ada --display-name Ada --fhir-user p1'
    assert.equal((await run(add, named, 'correct horse battery\n')).exitCode, 0)
    assert.equal((await run(`${line} --user ada`, named)).exitCode, 0)
  })
})

describe('sallyport launch', () => {
  it('prints a link with a launch token for this app, patient and user, and records the launch (CLI-7)', async () => {
    const { stdout } = await run('launch --client my-app --patient one')
    const link = new URL(stdout.trim())
    assert.equal(`${link.origin}${link.pathname}`, 'http://localhost:1/launch')
    assert.equal(link.searchParams.get('iss'), FHIR_URL)
    const hash = sha256(link.searchParams.get('launch') ?? '')
    const row = await select(db =>
      db.selectFrom('launch_token').selectAll().where('token_hash', '=', hash).executeTakeFirstOrThrow(),
    )
    assert.deepEqual([row.patient_id, row.client_id, row.clinician_username], ['one', 'my-app', 'clinician'])
    assert.match(await readTrail(row.launch_id), / {2}launch {2}.* {2}Issued on the command line\n$/)
  })

  it('simulates an error of the lab, by the name that the lab has for it (CLI-7)', async () => {
    const line = 'launch --client my-app --patient one --simulate'
    const link = new URL((await run(`${line} token:invalid_grant`)).stdout.trim())
    const hash = sha256(link.searchParams.get('launch') ?? '')
    const { extension, launch_id } = await select(db =>
      db.selectFrom('launch_token').selectAll().where('token_hash', '=', hash).executeTakeFirstOrThrow(),
    )
    assert.equal(extension, '{"simulate":"token:invalid_grant"}')
    assert.match(
      await readTrail(launch_id),
      /Issued on the command line; Simulated by the lab: token:invalid_grant\n$/,
    )
    for (const [name, meant] of [
      ['token:invalid_grnt', ', did you mean token:invalid_grant?\n'],
      ['access_denied', ', did you mean authorize:access_denied?\n'],
      ['nonsense', ': see '],
    ] as const) {
      const { exitCode, stderr } = await run(`${line} ${name}`)
      assert.equal(exitCode, 2)
      assert.ok(stderr.startsWith(`Unknown --simulate ${name}${meant}`), stderr)
    }
  })

  it('lists every error of the lab in its help text (CLI-7)', async () => {
    const { stdout } = await run('launch --help')
    const { SIMULATIONS } = await loadTestCommands()
    const listed = stdout.match(/\b[a-z-]+:[a-z0-9_-]+(?=[,\n])/g) ?? []
    assert.deepEqual(new Set(listed), new Set(SIMULATIONS))
  })

  it('opens the link in the browser', async () => {
    const [browser, opened] = [join(folder, 'browser'), join(folder, 'opened')]
    writeFileSync(browser, `#!/bin/sh\necho "$1" > ${opened}.part && mv ${opened}.part ${opened}\n`)
    chmodSync(browser, 0o700)
    const watcher = watch(folder)
    const { stdout } = await run('launch --client my-app --patient one --open', { BROWSER: browser })
    while (!existsSync(opened)) await once(watcher, 'change')
    watcher.close()
    assert.equal(readFileSync(opened, 'utf8'), stdout)
  })

  it('refuses an app without a launch URL', async () => {
    await run('client add --id no-launch --public --redirect-uri http://localhost:1/cb --scope openid')
    const { exitCode, stderr } = await run('launch --client no-launch --patient one')
    assert.deepEqual(
      [exitCode, stderr],
      [1, 'Cannot launch: The app no-launch has no launch URL: see client set --launch-url.\n'],
    )
  })
})
