import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { compare } from 'bcrypt'
import { sallyport, terminal } from '../../../test/support/command-line.ts'
import { eachDatabaseIfThorough } from '../../../test/support/databases.ts'
import { listGood, stampRows } from '../../auth/testing/stamp.ts'
import { openRepository } from '../../backends/sqlite/index.ts'
import { openStore, type Store } from '../../store/index.ts'

const ADA = [
  'clinician',
  'add',
  '--username',
  'ada',
  '--display-name',
  'Dr. Ada Byron',
  '--fhir-user',
  'practitioner-7',
]

eachDatabaseIfThorough((_, __, create) => {
  async function setUp(content?: 'empty', more: Readonly<Record<string, string>> = {}) {
    const SMART_DATABASE_URL = await create(content)
    const run = (args: readonly string[], stdin: string | ReturnType<typeof terminal> = '') =>
      sallyport(args, { env: { SMART_DATABASE_URL, ...more }, stdin })
    const look = async <T>(use: (store: Store) => Promise<T>) => {
      const store = await openStore(SMART_DATABASE_URL)
      return use(store).finally(() => store.close())
    }
    const rows = () => look(({ db }) => db.selectFrom('clinician').selectAll().execute())
    return { run, look, rows }
  }

  describe('sallyport clinician add', () => {
    it('has succeeded once the clinician is stored, even if what follows from it cannot be checked (CLI-1)', async t => {
      const folder = mkdtempSync(join(tmpdir(), 'sallyport-notes-'))
      t.after(() => rmSync(folder, { recursive: true }))
      // No data folder can be made here, and the token for a request to the upstream needs its secret.
      symlinkSync(join(folder, 'missing'), join(folder, 'data'))
      const { run, rows } = await setUp('empty', {
        SMART_DATA_DIR: join(folder, 'data'),
        SMART_FHIR_UPSTREAM_URL: 'http://localhost:9/fhir',
      })
      const { exitCode, stderr } = await run(ADA, 'correct horse\n')
      assert.equal(exitCode, 0, stderr)
      assert.match(stderr, /^Note: the change is complete, but its consequences were not checked: /m)
      assert.equal((await rows()).length, 1)
    })

    it('creates the database before the first start and adds a clinician with a bcrypt hash (CLI-1)', async () => {
      const { run, rows } = await setUp('empty')
      const { exitCode, stdout, stderr } = await run(ADA, 'correct horse\n')
      assert.equal(exitCode, 0, stderr)
      const [row, ...more] = await rows()
      assert.ok(row)
      assert.deepEqual(more, [])
      assert.equal(stdout, `Added clinician ada with id ${row.id}\n`)
      assert.deepEqual(
        {
          ...row,
          password_hash: await compare('correct horse', row.password_hash),
          created_at: typeof row.created_at,
        },
        {
          id: row.id,
          username: 'ada',
          password_hash: true,
          display_name: 'Dr. Ada Byron',
          fhir_user_id: 'practitioner-7',
          disabled: false,
          admin: false,
          auditor: false,
          access_version: 0,
          for_loopback: false,
          must_change_password: false,
          created_at: 'number',
          signed_in_at: null,
          password_changed_at: null,
        },
      )
    })

    it('notes that the embedded FHIR server has no such Practitioner', async () => {
      const SMART_DATABASE_URL = await create()
      const SMART_DATA_DIR = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
      try {
        const file = join(SMART_DATA_DIR, 'fhir.db')
        const repository = openRepository({ file, baseUrl: 'http://localhost:8080/fhir' })
        repository.load([{ resourceType: 'Practitioner', id: 'practitioner-7' }])
        repository.close()
        const add = async (username: string, user: string) => {
          const args = [
            'clinician',
            'add',
            '--username',
            username,
            '--display-name',
            'X',
            '--fhir-user',
            user,
          ]
          const env = { SMART_DATABASE_URL, SMART_DATA_DIR }
          const { exitCode, stderr } = await sallyport(args, { env, stdin: 'correct horse\n' })
          return [exitCode, stderr]
        }
        assert.deepEqual(await add('ada', 'practitioner-7'), [0, ''])
        assert.deepEqual(await add('eve', 'Practitioner/practitioner-77'), [
          0,
          'Note: the FHIR server has no Practitioner/practitioner-77; create or import it\n',
        ])
        const [exitCode, note] = await add('bea', 'practitioner-7')
        assert.equal(exitCode, 0)
        assert.match(String(note), /^Note: Practitioner\/practitioner-7 is also the FHIR user of ada\. /)
      } finally {
        rmSync(SMART_DATA_DIR, { recursive: true, force: true })
      }
    })

    it('notes that the FHIR server of a gateway does not respond, or has no such Practitioner', async () => {
      const SMART_DATABASE_URL = await create()
      const server = createServer((request, response) => {
        response.writeHead(request.url === '/fhir/Practitioner/p-404' ? 404 : 500).end()
      })
      await once(server.listen(0, '127.0.0.1'), 'listening')
      const { port } = server.address() as AddressInfo
      const env = {
        SMART_DATABASE_URL,
        SMART_SECRET: 'a'.repeat(64),
        SMART_FHIR_UPSTREAM_URL: 'http://localhost:1/fhir',
        SMART_FHIR_BASE_URL: `http://127.0.0.1:${port}/fhir`,
      }
      const add = async (username: string, user: string) => {
        const args = ['clinician', 'add', '--username', username, '--display-name', 'X', '--fhir-user', user]
        return (await sallyport(args, { env, stdin: 'correct horse\n' })).stderr
      }
      try {
        assert.match(await add('cleo', 'p-1'), /^Note: the FHIR server does not respond/m)
        const { SMART_FHIR_BASE_URL: _, ...rotating } = env
        await sallyport(['keys', 'rotate'], { env: rotating })
        assert.match(await add('eve', 'p-404'), /^Note: the FHIR server has no Practitioner\/p-404; create/m)
        assert.match(
          await add('ada', 'p-500'),
          /^Note: the FHIR server does not respond, so Practitioner\/p-500 /m,
        )
      } finally {
        server.close()
      }
    })

    it('accepts a short or common password with a warning and a better one without', async () => {
      const { run } = await setUp()
      const short = await run(ADA, '1234567\n')
      assert.equal(short.exitCode, 0)
      assert.equal(short.stderr, 'Password is easy to guess: use at least 8 characters\n')
      const longer = await run(['clinician', 'set-password', 'ada'], '12345678\n')
      assert.deepEqual(
        [longer.exitCode, longer.stderr],
        [0, 'Password is easy to guess: use another password, because many people use this one\n'],
      )
      const better = await run(['clinician', 'set-password', 'ada'], 'correct horse\n')
      assert.deepEqual([better.exitCode, better.stderr], [0, ''])
    })

    it('refuses a password off loopback that is easy to guess', async () => {
      const { run, rows } = await setUp(undefined, { SMART_ISSUER_URL: 'https://auth.example' })
      const refused = await run(ADA, 'sallyport-sallyport\n')
      assert.equal(refused.exitCode, 2)
      assert.match(refused.stderr, /many people use this one/)
      assert.ok(!(await rows()).some(({ username }) => username === 'ada'))
      assert.match((await run(ADA, 'correct horse\n')).stderr, /use at least 15 characters/)
      assert.equal((await run(ADA, 'correct horse staple\n')).exitCode, 0)
    })

    it('prompts for the password twice on a terminal without echo', async () => {
      const { run, rows } = await setUp()
      const { exitCode, stdout, stderr } = await run(ADA, terminal('not seen\r', 'not seen\r'))
      assert.equal(exitCode, 0)
      assert.equal(stderr, 'Password: \nPassword again: \n')
      assert.doesNotMatch(stdout, /seen/)
      assert.equal(await compare('not seen', (await rows())[0]?.password_hash ?? ''), true)
    })

    it('stores the bare id of Practitioner/<id>', async () => {
      const { run, rows } = await setUp()
      await run([...ADA.slice(0, -1), 'Practitioner/p.1-x'], 'pw')
      assert.equal((await rows())[0]?.fhir_user_id, 'p.1-x')
    })

    it('adds an account that opens no records, without a FHIR user, and changes it (LOGIN-19)', async () => {
      const { run, rows } = await setUp()
      const add = [...ADA.slice(0, -2), '--no-records', '--auditor']
      assert.deepEqual((await run(add, 'correct horse\n')).stderr, '')
      assert.equal((await rows())[0]?.fhir_user_id, '')
      assert.match((await run(['clinician', 'list'])).stdout, /ada .* active, auditor, no records /)
      assert.equal((await run([...ADA, '--no-records'], 'pw')).exitCode, 2)
      const set = (...args: readonly string[]) => run(['clinician', 'set', 'ada', ...args])
      assert.equal((await set('--fhir-user', 'p-1')).exitCode, 0)
      assert.equal((await rows())[0]?.fhir_user_id, 'p-1')
      assert.equal((await set('--no-records')).exitCode, 0)
      assert.equal((await rows())[0]?.fhir_user_id, '')
    })

    it('refuses a username that is taken and keeps the first clinician', async () => {
      const { run, rows } = await setUp()
      await run(ADA, 'first')
      const { exitCode, stderr } = await run(ADA, 'second')
      assert.equal(exitCode, 1)
      assert.equal(stderr, 'Cannot add clinician ada: the username is taken\n')
      assert.equal(await compare('first', (await rows())[0]?.password_hash ?? ''), true)
    })
  })

  describe('sallyport account add', () => {
    it('adds a related person with a RelatedPerson for each patient they act for (PATIENTS-4)', async () => {
      const { run, rows, look } = await setUp()
      const add = ['account', 'add', '--username', 'ines']
      const named = ['--related-person', 'r-1', '--related-person', 'RelatedPerson/r-2']
      const { exitCode, stderr } = await run([...add, ...named], 'correct horse\n')
      assert.equal(exitCode, 0, stderr)
      assert.equal((await rows())[0]?.fhir_user_id, 'RelatedPerson/r-1')
      const stored = await look(({ db }) => db.selectFrom('account_related_person').selectAll().execute())
      assert.deepEqual(stored.map(row => row.related_person_id).toSorted(), ['r-1', 'r-2'])
      const nobody = await run(add, 'correct horse\n')
      assert.deepEqual(
        [nobody.exitCode, nobody.stderr.split('\n')[0]],
        [2, 'Needs --patient or --related-person'],
      )
    })

    it('changes the RelatedPersons of an account (PATIENTS-4)', async () => {
      const { run, look } = await setUp()
      await run(['account', 'add', '--username', 'ines', '--related-person', 'r-1'], 'correct horse\n')
      const related = async () => {
        const rows = await look(({ db }) => db.selectFrom('account_related_person').selectAll().execute())
        return rows.map(row => row.related_person_id).toSorted()
      }
      const set = (...args: readonly string[]) => run(['account', 'set', 'ines', ...args])
      assert.equal((await set('--related-person', 'r-2', '--related-person', 'r-3')).exitCode, 0)
      assert.deepEqual(await related(), ['r-2', 'r-3'])
      assert.equal((await set('--no-related-persons', '--patient', 'p-1')).stdout, 'Changed account ines\n')
      assert.deepEqual(await related(), [])
      assert.equal((await set()).exitCode, 2)
    })

    it('adds a patient, whose name is the username by default (PATIENTS-1)', async () => {
      const { run, rows } = await setUp()
      const add = ['account', 'add', '--username', 'alba', '--patient']
      const { exitCode, stdout, stderr } = await run([...add, 'Patient/patient-1'], 'correct horse\n')
      assert.equal(exitCode, 0, stderr)
      const [row] = await rows()
      assert.equal(stdout, `Added account alba with id ${row?.id}\n`)
      assert.deepEqual([row?.fhir_user_id, row?.display_name], ['Patient/patient-1', 'alba'])
      assert.match((await run(['account', 'list'])).stdout, /alba +alba +Patient\/patient-1/)
      assert.doesNotMatch((await run(['clinician', 'list'])).stdout, /alba/)
      const wrong = await run([...add, 'Practitioner/1'], 'correct horse\n')
      assert.equal(wrong.exitCode, 2)
      assert.match(wrong.stderr, /Cannot use --patient: expected the id of a Patient/)
    })
  })

  describe('sallyport clinician list', () => {
    it('lists clinicians without hashes', async () => {
      const { run } = await setUp()
      await run(ADA, 'pw')
      await run(['clinician', 'disable', '--username', 'ada'])
      const { exitCode, stdout } = await run(['clinician', 'list'])
      assert.equal(exitCode, 0)
      assert.match(
        stdout,
        /^USERNAME +DISPLAY NAME +FHIR USER +STATE +SECOND FACTORS +LAST SIGN-IN +ID\nada +Dr\. Ada Byron +Practitioner\/practitioner-7 +disabled +none +never +[0-9a-f-]{36}\n$/,
      )
    })

    it('has the lists of the page, by --state and --search', async () => {
      const { run, look } = await setUp()
      await run([...ADA, '--admin'], 'pw')
      await run(['clinician', 'add', '--username', 'bea', '--display-name', 'Bea', '--fhir-user', 'p8'], 'pw')
      await look(({ db }) =>
        db.updateTable('clinician').set({ for_loopback: true }).where('username', '=', 'bea').execute(),
      )
      const list = async (...args: readonly string[]) => (await run(['clinician', 'list', ...args])).stdout
      assert.match(
        await list('--state', 'administrators'),
        /STATE[^\n]+\nada .* active, administrator [^\n]+\n$/,
      )
      assert.match(await list('--search', 'BE'), /STATE[^\n]+\nbea .* active, loopback only [^\n]+\n$/)
      assert.match(await list('--state', 'locked'), /^USERNAME[^\n]+\n$/)
      const unknown = await run(['clinician', 'list', '--state', 'asleep'])
      assert.equal(unknown.exitCode, 2)
      assert.match(
        unknown.stderr,
        /Cannot use --state: expected one of all, administrators, auditors, without/,
      )
    })
  })

  const withLogin = async (store: Store) => {
    const { id } = await store.db.selectFrom('clinician').select('id').executeTakeFirstOrThrow()
    await store.db
      .insertInto('login')
      .values({ id_hash: 'l', clinician_id: id, created_at: 1, expires_at: Date.now() + 60_000 })
      .execute()
    await store.db
      .insertInto('client')
      .values({
        client_id: 'app',
        name: 'App',
        auth_method: 'none',
        redirect_uris: '[]',
        scope: '',
        first_party: false,
        created_at: 1,
      })
      .execute()
    await store.db
      .insertInto('grant')
      .values({
        id: 'g',
        client_id: 'app',
        clinician_id: id,
        login_id_hash: 'l',
        scope: '',
        auth_time: 1,
        created_at: 1,
        last_used_at: 1,
      })
      .execute()
    await stampRows(store.db)
  }

  describe('sallyport clinician set-password', () => {
    it('sets the password and ends logins with the old one', async () => {
      const { run, look, rows } = await setUp()
      await run(ADA, 'old')
      await look(withLogin)
      const { exitCode, stdout } = await run(['clinician', 'set-password', '--username', 'ada'], 'new\r\n')
      assert.equal(exitCode, 0)
      assert.equal(stdout, 'Set the password of clinician ada\n')
      assert.equal(await compare('new', (await rows())[0]?.password_hash ?? ''), true)
      assert.deepEqual(await look(({ db }) => listGood(db)), [])
    })

    it('prints a link instead, with which the user chooses the password (LOGIN-17)', async () => {
      const { run, rows } = await setUp()
      const added = await run([...ADA, '--activation-link'])
      const LINK =
        /^http:\/\/localhost:9000\/login\/activate#[\w-]{43}\nThe user can choose a password with this link, once, until 20\d\d-/m
      assert.match(added.stdout, LINK)
      assert.equal((await rows())[0]?.password_hash, '')
      await run(['clinician', 'set-password', 'ada'], 'old')
      const reset = await run(['clinician', 'set-password', 'ada', '--activation-link'])
      assert.match(reset.stdout, /^Removed the password of clinician ada\n/)
      assert.match(reset.stdout, LINK)
      assert.equal((await rows())[0]?.password_hash, '')
    })

    it('revokes app access; with --keep-apps only access that ends with the login (CLI-3)', async () => {
      const offline = { id: 'offline', scope: 'launch offline_access patient/*.rs' }
      const cases = [
        [[], []],
        [['--keep-apps'], ['offline']],
      ] as const
      for (const [options, kept] of cases) {
        const { run, look } = await setUp()
        await run(ADA, 'old')
        await look(async store => {
          await withLogin(store)
          const grant = await store.db.selectFrom('grant').selectAll().executeTakeFirstOrThrow()
          await store.db
            .insertInto('grant')
            .values({ ...grant, ...offline })
            .execute()
        })
        assert.equal((await run(['clinician', 'set-password', 'ada', ...options], 'new')).exitCode, 0)
        assert.deepEqual(await look(({ db }) => listGood(db)), kept)
      }
    })

    it('also accepts the username as an argument', async () => {
      const { run } = await setUp()
      await run(ADA, 'old')
      assert.equal((await run(['clinician', 'set-password', 'ada'], 'new')).exitCode, 0)
    })

    it('reports an unknown clinician', async () => {
      const { run } = await setUp()
      const { exitCode, stderr } = await run(['clinician', 'set-password', '--username', 'eve'], 'new')
      assert.equal(exitCode, 1)
      assert.equal(stderr, 'Cannot set password: there is no clinician eve\n')
    })
  })

  describe('sallyport clinician disable', () => {
    it('ends logins and revokes app access; enable allows logins again (ENDS-1, CLI-3)', async () => {
      const { run, look, rows } = await setUp()
      await run(ADA, 'pw')
      await look(withLogin)
      assert.deepEqual(await look(({ db }) => listGood(db)), ['g', 'l'])
      assert.deepEqual(await run(['clinician', 'disable', '--username', 'ada']), {
        exitCode: 0,
        stdout: 'Disabled clinician ada\n',
        stderr: '',
      })
      assert.equal((await rows())[0]?.disabled, true)
      assert.deepEqual(await look(({ db }) => listGood(db)), [])
      assert.equal((await run(['clinician', 'enable', 'ada'])).exitCode, 0)
      assert.equal((await rows())[0]?.disabled, false)
      assert.deepEqual(await look(({ db }) => listGood(db)), [])
      assert.equal((await run(['clinician', 'disable', 'eve'])).exitCode, 1)
    })
  })
})

describe('sallyport clinician', () => {
  const refuses: readonly (readonly [
    args: readonly string[],
    stdin: string,
    exitCode: number,
    line: RegExp,
  ])[] = [
    [ADA.slice(0, -2), 'pw', 2, /^Missing --fhir-user: see .*--help\n$/],
    [[...ADA.slice(0, -1), ''], 'pw', 2, /^Empty --fhir-user\n$/],
    [
      [...ADA.slice(0, -1), 'Patient/1'],
      'pw',
      2,
      /^Cannot use --fhir-user: expected the id of a Practitioner/,
    ],
    [['clinician', 'add', '--username', ' ada', ...ADA.slice(4)], 'pw', 2, /^Cannot use --username/],
    [ADA, '', 1, /^Cannot use password: it is empty\n$/],
    [ADA, '\n', 1, /^Cannot use password: it is empty\n$/],
    [ADA, 'é'.repeat(37), 1, /^Cannot use password: it is longer than 72 bytes/],
    [ADA, 'x'.repeat(100_000), 1, /^Cannot use password: it is longer than 72 bytes/],
    [ADA, 'a\0b', 1, /^Cannot use password: it contains a NUL character\n$/],
    [['clinician', 'disable'], '', 2, /^Missing --username: see .*--help\n$/],
    [
      ['clinician', 'disable', 'ada', '--username', 'bea'],
      '',
      2,
      /^Unexpected argument ada: --username is already set\n$/,
    ],
  ]
  for (const [args, stdin, exitCode, line] of refuses) {
    it(`refuses ${JSON.stringify(args.slice(1).join(' '))} with ${JSON.stringify(stdin.slice(0, 20))} and touches no database`, async () => {
      const done = await sallyport(args, { stdin, env: { SMART_DATABASE_URL: 'sqlite:/dev/null/x' } })
      assert.match(done.stderr, line)
      assert.equal(done.exitCode, exitCode)
    })
  }

  it('accepts a password of exactly 72 bytes from a pipe and reads only the first line', async () => {
    const done = await sallyport(ADA, {
      stdin: `${'x'.repeat(72)}\nmore\n`,
      env: { SMART_DATABASE_URL: 'sqlite:/dev/null/x' },
    })
    assert.match(done.stderr, /^Cannot open database/)
  })

  it('fails if the two passwords differ, or at Ctrl-C and Ctrl-D', async () => {
    const at = (stdin: ReturnType<typeof terminal>) =>
      sallyport(ADA, { stdin, env: { SMART_DATABASE_URL: 'sqlite:/dev/null/x' } })
    assert.match(
      (await at(terminal('one\r', 'two\r'))).stderr,
      /Cannot use password: the two entries differ\n$/,
    )
    assert.match((await at(terminal('one\x03'))).stderr, /Cannot read password: canceled\n$/)
    assert.match((await at(terminal('\x04'))).stderr, /Cannot read password: canceled\n$/)
  })
})
