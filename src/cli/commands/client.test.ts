import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { sallyport } from '../../../test/support/command-line.ts'
import { eachDatabaseIfThorough } from '../../../test/support/databases.ts'
import { openStore, type Store, sha256 } from '../../store/index.ts'

const cwd = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
after(() => rmSync(cwd, { recursive: true, force: true }))
const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' })
const PUBLIC_KEY = { ...publicKey.export({ format: 'jwk' }), kid: 'k' }
writeFileSync(join(cwd, 'keys.json'), JSON.stringify({ keys: [PUBLIC_KEY] }))

const APP = [
  'client',
  'add',
  '--id',
  'growth',
  '--redirect-uri',
  'https://app.example/callback',
  '--scope',
  'launch patient/Observation.rs',
]

eachDatabaseIfThorough((_, __, create) => {
  async function setUp(content?: 'empty') {
    const SMART_DATABASE_URL = await create(content)
    const run = (...args: readonly string[]) => sallyport(args, { env: { SMART_DATABASE_URL }, cwd })
    const look = async <T>(use: (store: Store) => Promise<T>) => {
      const store = await openStore(SMART_DATABASE_URL)
      return use(store).finally(() => store.close())
    }
    const rows = () => look(({ db }) => db.selectFrom('client').selectAll().orderBy('client_id').execute())
    return { run, rows, look }
  }

  describe('sallyport client add', () => {
    it('registers a public app before the first start (CLIENT-2, CLI-1)', async () => {
      const { run, rows } = await setUp('empty')
      const done = await run(
        ...APP,
        '--public',
        '--redirect-uri',
        'http://127.0.0.1:3000/cb',
        '--launch-url',
        'https://app.example/launch?x=1',
        '--name',
        'Growth chart',
        '--description',
        'Draws growth charts.',
        '--logo-url',
        'https://app.example/logo.svg',
        '--website-url',
        'https://app.example/',
        '--policy-url',
        'https://app.example/privacy',
        '--terms-url',
        'https://app.example/terms',
        '--contact',
        'help@app.example',
        '--contact',
        '555 0100',
        '--post-logout-redirect-uri',
        'https://app.example/bye',
        '--first-party',
      )
      assert.deepEqual(done, { exitCode: 0, stdout: 'client_id: growth\n', stderr: '' })
      const [row] = await rows()
      assert.ok(row && Math.abs(row.created_at - Date.now()) < 60_000)
      assert.deepEqual(row, {
        client_id: 'growth',
        name: 'Growth chart',
        description: 'Draws growth charts.',
        logo_url: 'https://app.example/logo.svg',
        website_url: 'https://app.example/',
        policy_url: 'https://app.example/privacy',
        terms_url: 'https://app.example/terms',
        contacts: '["help@app.example","555 0100"]',
        auth_method: 'none',
        secret_hash: null,
        jwks: null,
        jwks_url: null,
        redirect_uris: '["https://app.example/callback","http://127.0.0.1:3000/cb"]',
        post_logout_redirect_uris: '["https://app.example/bye"]',
        launch_url: 'https://app.example/launch?x=1',
        scope: 'launch patient/Observation.rs',
        first_party: true,
        approved: true,
        pkce_required: true,
        iss_parameter: true,
        created_at: row.created_at,
        expires_at: null,
        disabled: false,
        document_until: null,
        enabled_at: null,
        for_loopback: false,
        registered_by: null,
      })
    })

    it('notes scopes that are not granted as written if a search needs r', async () => {
      const { run } = await setUp()
      const scope = 'patient/Patient.s patient/Condition.cs patient/Observation.rs openid'
      const note = (what: string) =>
        `Note: ${what}: a search needs r on this server (smart.fhir.search-letter), so request rs\n`
      const notes =
        note('patient/Patient.s is never granted') + note('patient/Condition.cs is granted without its s')
      const added = await run(...APP.slice(0, -1), scope, '--public')
      assert.deepEqual(added, { exitCode: 0, stdout: 'client_id: growth\n', stderr: notes })
      assert.equal((await run('client', 'set', 'growth', '--scope', scope)).stderr, notes)
      assert.equal((await run('client', 'set', 'growth', '--name', 'x')).stderr, '')
    })

    it('notes misspelt scopes, with what was probably meant', async () => {
      const { run } = await setUp()
      const scope =
        'launch/ecounter patient/Observation.rs?categry=x patient/Observation.rs?category:in=x&_tag=y'
      assert.equal(
        (await run(...APP.slice(0, -1), scope, '--public')).stderr,
        'Note: launch/ecounter is never granted, did you mean launch/encounter?\n' +
          'Note: patient/Observation.rs?categry=x permits nothing: Observation has no search parameter categry, did you mean category?\n',
      )
    })

    it('prints a generated secret once and stores its hash (CLIENT-9)', async () => {
      const { run, rows } = await setUp()
      const { exitCode, stdout } = await run(...APP, '--secret')
      assert.equal(exitCode, 0)
      const secret = /^client_secret: ([\w-]{43})$/m.exec(stdout)?.[1] ?? ''
      const [row] = await rows()
      assert.equal(row?.auth_method, 'client_secret')
      assert.equal(row?.secret_hash, sha256(secret))
      assert.equal(row?.name, 'growth')
      assert.doesNotMatch(JSON.stringify(row), new RegExp(secret))
      assert.doesNotMatch((await run('client', 'list')).stdout, new RegExp(secret))
    })

    it('stores a key set URL without fetching it', async () => {
      const { run, rows } = await setUp()
      assert.equal((await run(...APP, '--jwks-url', 'https://nobody.invalid/jwks')).exitCode, 0)
      const [row] = await rows()
      assert.equal(row?.auth_method, 'private_key_jwt')
      assert.equal(row?.jwks_url, 'https://nobody.invalid/jwks')
    })

    it('stores keys from a file', async () => {
      const { run, rows } = await setUp()
      assert.equal((await run(...APP, '--jwks-file', 'keys.json')).exitCode, 0)
      assert.equal((await rows())[0]?.jwks, JSON.stringify({ keys: [PUBLIC_KEY] }))
    })

    it('refuses more than 100 scopes, also when changing a client', async () => {
      const { run } = await setUp()
      const scope = Array.from({ length: 101 }, (_, at) => `patient/Observation.rs?code=${at}`).join(' ')
      const error = 'Cannot use --scope: it has more than 100 scopes\n'
      const add = ['client', 'add', '--id', 'many', '--public', '--redirect-uri', 'https://a.example/']
      assert.ok((await run(...add, '--scope', scope)).stderr.startsWith(error))
      await run(...APP, '--public')
      assert.ok((await run('client', 'set', 'growth', '--scope', scope)).stderr.startsWith(error))
    })

    it('names each wrong value on a line of its own, also when changing a client', async () => {
      const { run } = await setUp()
      await run(...APP, '--public')
      const wrong = ['--redirect-uri', 'foo', '--redirect-uri', 'bar', '--scope', 'patient/Foo.rs baz']
      const lines = [
        'Cannot use --redirect-uri foo: expected an absolute URL',
        'Cannot use --redirect-uri bar: expected an absolute URL',
        'Cannot use --scope patient/Foo.rs: FHIR R4 has no resource type Foo',
        'Cannot use --scope baz: expected for example patient/Condition.rs',
      ]
      const add = ['client', 'add', '--id', 'wrong', '--public', ...wrong]
      for (const command of [add, ['client', 'set', 'growth', ...wrong]]) {
        const { stderr, exitCode } = await run(...command)
        assert.deepEqual([stderr.trimEnd().split('\n'), exitCode], [lines, 2])
      }
    })

    it('needs no redirect URI with only system/ scopes', async () => {
      const { run, rows } = await setUp()
      const done = await run(
        'client',
        'add',
        '--id',
        'back-end',
        '--scope',
        'system/Patient.rs system/*.rs',
        '--jwks-url',
        'https://back.example/jwks',
      )
      assert.equal(done.exitCode, 0, done.stderr)
      assert.equal((await rows())[0]?.redirect_uris, '[]')
    })

    it('refuses an id that is taken and keeps the first client', async () => {
      const { run, rows } = await setUp()
      await run(...APP, '--public')
      assert.deepEqual(await run(...APP, '--secret'), {
        exitCode: 1,
        stdout: '',
        stderr: 'Cannot add app growth: the id is taken\n',
      })
      assert.equal((await rows())[0]?.auth_method, 'none')
    })
  })

  describe('sallyport client approve', () => {
    it('approves a self-registered app; list and show mark unverified apps', async () => {
      const { run, rows, look } = await setUp()
      for (const id of ['growth', 'second']) {
        await run(...APP.with(3, id), '--public')
        await look(({ db }) => db.updateTable('client').set({ approved: false }).execute())
      }
      assert.match((await run('client', 'list')).stdout, /growth +growth +public +asked +unverified\n/)
      assert.match((await run('client', 'show', 'growth')).stdout, /^state +unverified; /m)
      assert.deepEqual(await run('client', 'approve', 'growth'), {
        exitCode: 0,
        stdout: 'Approved app growth\n',
        stderr: '',
      })
      assert.match((await run('client', 'list')).stdout, /growth +growth +public +asked +approved\n/)
      assert.match((await run('client', 'show', 'growth')).stdout, /^state +approved$/m)
      assert.equal((await run('client', 'approve', '--id', 'growth')).exitCode, 0)
      assert.deepEqual(await run('client', 'approve', 'nobody'), {
        exitCode: 1,
        stdout: '',
        stderr: 'Cannot approve app: there is no app nobody\n',
      })
      await run('client', 'set', 'second', '--name', 'Second')
      assert.equal((await rows())[1]?.approved, false)
      await run('client', 'set', 'second', '--first-party')
      assert.equal((await rows())[1]?.approved, true)
    })
  })

  describe('sallyport client list and remove', () => {
    it('shows the controls of a name instead of obeying them (CLI-10)', async () => {
      const { run, look } = await setUp()
      await run(...APP, '--public')
      const name = 'Evil\u001b[2K\r\n\u202e\u009b31m'
      await look(({ db }) => db.updateTable('client').set({ name }).execute())
      const { stdout } = await run('client', 'list')
      assert.equal(stdout.split('\n').length, 3)
      assert.ok(stdout.includes(String.raw` Evil\u001b[2K\u000d\u000a\u202e\u009b31m `))
    })

    it('lists and removes clients, and reports an unknown client', async () => {
      const { run, rows } = await setUp()
      await run(...APP, '--public')
      const { stdout } = await run('client', 'list')
      assert.match(
        stdout,
        /^ID +NAME +AUTHENTICATION +CONSENT +STATE +LAUNCH URL\ngrowth +growth +public +asked +approved\n$/,
      )
      assert.deepEqual(await run('client', 'remove', '--id', 'growth'), {
        exitCode: 0,
        stdout: 'Removed app growth\n',
        stderr: '',
      })
      assert.deepEqual(await rows(), [])
      assert.deepEqual(await run('client', 'remove', 'growth'), {
        exitCode: 1,
        stdout: '',
        stderr: 'Cannot remove app: there is no app growth\n',
      })
    })
  })
})

describe('sallyport client add', () => {
  writeFileSync(join(cwd, 'private.json'), JSON.stringify({ keys: [{ ...PUBLIC_KEY, d: 'private' }] }))
  writeFileSync(join(cwd, 'shared.json'), JSON.stringify({ keys: [{ kty: 'oct', k: 'shared' }] }))
  writeFileSync(join(cwd, 'odd.json'), JSON.stringify({ keys: [{ kty: 'OKP', crv: 'Ed25519', x: 'x' }] }))
  writeFileSync(join(cwd, 'empty.json'), '{"keys":[]}')
  writeFileSync(join(cwd, 'text.json'), 'hush: no JSON')

  const changed = (option: string, value: string) =>
    APP.map((text, i) => (APP[i - 1] === option ? value : text))
  const redirect = (value: string) => [...changed('--redirect-uri', value), '--public']
  const scope = (value: string) => [...changed('--scope', value), '--public']
  const refuses: readonly (readonly [args: readonly string[], line: RegExp, exitCode?: number])[] = [
    [APP, /^Expected one of --public, --secret, --jwks-url and --jwks-file$/],
    [[...APP, '--public', '--secret'], /^Expected one of/],
    [['client', 'add', '--public'], /^Missing --id: see npm run -s sallyport -- client add --help$/],
    [['client', 'add', '--id', 'x', '--public'], /^Missing --scope: see /],
    [
      ['client', 'add', '--id', 'x', '--public', '--scope', 'openid'],
      /^Cannot use --redirect-uri: expected at least one/,
    ],
    [
      ['client', 'add', '--id', 'x', '--secret', '--scope', 'system/*.rs openid'],
      /^Cannot use --redirect-uri: expected/,
    ],
    [
      ['client', 'add', '--id', 'x', '--public', '--scope', 'system/*.rs'],
      /^Cannot use --scope: an app with system\/ scopes must sign: it needs keys, or the URL of its keys$/,
    ],
    [
      ['client', 'add', '--id', 'x', '--secret', '--scope', '__launch-contexts.c'],
      /must sign: it needs keys/,
    ],
    [
      [...APP, '--public', '--post-logout-redirect-uri', 'ftp://x/y'],
      /^Cannot use --post-logout-redirect-uri ftp:\/\/x\/y: expected https/,
    ],
    [
      [...APP, '--public', '--name', 'Evil\u202e'],
      /^Cannot use --name: expected .* without invisible characters/,
    ],
    [[...APP, '--public', '--description', 'Evil\n'], /^Cannot use --description: expected .* on one line/],
    [[...changed('--id', 'two words'), '--public'], /^Cannot use --id: expected/],
    [[...changed('--id', 'sallyport-portal'), '--public'], /^Cannot use --id sallyport-portal/],
    [redirect('/callback'), /^Cannot use --redirect-uri \/callback: expected an absolute URL$/],
    [redirect('https://app.example/cb#x'), /without a fragment$/],
    [redirect('https://app.example/cb#'), /without a fragment$/],
    [redirect('http://app.example/cb'), /expected https, http on loopback, or a private-use scheme$/],
    [redirect('javascript:alert(1)'), /expected https/],
    [redirect('data:text/html,x'), /expected https/],
    [redirect('file:///etc/passwd'), /expected https/],
    [redirect('https://me:pw@app.example/cb'), /without a user name and password$/],
    [redirect('https://app.example/a b'), /expected an absolute URL$/],
    [
      [...APP, '--public', '--launch-url', 'ftp://x/y'],
      /^Cannot use --launch-url ftp:\/\/x\/y: expected an http or https URL$/,
    ],
    [
      [...APP, '--jwks-url', 'http://app.example/jwks'],
      /^Cannot use --jwks-url .*: expected https, or http on loopback$/,
    ],
    [scope(' '), /^Cannot use --scope: expected at least one scope$/],
    [scope('patient/Patient.sr'), /^Cannot use --scope patient\/Patient\.sr: write patient\/Patient\.rs$/],
    [scope('lanch/patient'), /^Cannot use --scope lanch\/patient: write launch\/patient$/],
    [scope('teapot'), /^Cannot use --scope teapot: expected for example patient\/Condition\.rs$/],
    [
      scope('patient/Patients.rs'),
      /^Cannot use --scope patient\/Patients\.rs: FHIR R4 has no resource type Patients: write Patient$/,
    ],
    [scope('patient/patient.rs'), /FHIR R4 has no resource type patient: write Patient$/],
    [
      [...APP, '--jwks-file', 'missing.json'],
      /^Cannot use --jwks-file: \/.*\/missing\.json does not exist$/,
      1,
    ],
    [[...APP, '--jwks-file', 'text.json'], /^Cannot use --jwks-file: \/.*\/text\.json is not JSON$/, 1],
    [[...APP, '--jwks-file', 'empty.json'], /expected a JSON Web Key Set with a key for RS384/, 1],
    [
      [...APP, '--jwks-file', 'private.json'],
      /it contains a private or secret key; use public keys only$/,
      1,
    ],
    [[...APP, '--jwks-file', 'shared.json'], /it contains a private or secret key/, 1],
    [[...APP, '--jwks-file', 'odd.json'], /expected a JSON Web Key Set with a key for RS384/, 1],
  ]
  for (const [args, line, exitCode = 2] of refuses) {
    it(`refuses ${args.slice(2).join(' ')}`, async () => {
      const done = await sallyport(args, { cwd, env: { SMART_DATABASE_URL: 'sqlite:/dev/null/x' } })
      assert.match(done.stderr.replace(/\n$/, ''), line)
      assert.equal(done.exitCode, exitCode)
      assert.equal(done.stdout, '')
    })
  }

  for (const uri of [
    'https://app.example/cb?x=1',
    'http://localhost:3000/cb',
    'http://[::1]/cb',
    'com.example.app:/callback',
    'com.example.app://callback',
  ]) {
    it(`accepts ${uri}`, async () => {
      const done = await sallyport(redirect(uri), { cwd, env: { SMART_DATABASE_URL: 'sqlite:/dev/null/x' } })
      assert.match(done.stderr, /^Cannot open database/)
    })
  }
})
