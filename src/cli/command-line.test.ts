import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { sallyport } from '../../test/support/command-line.ts'
import { LIST_COMMANDS, OPERATION_COMMANDS, SHOW_COMMANDS } from '../auth/index.ts'
import { commandNames } from './commands/table.ts'
import { readOptions } from './usage.ts'

const https = {
  SMART_ISSUER_URL: 'https://localhost:9000',
  SMART_FHIR_BASE_URL: 'https://localhost:8080/fhir',
  SMART_APP_URL: 'https://localhost:8081',
}

describe('sallyport', () => {
  it('lists every command with --help, and exits with 2 without arguments', async () => {
    const { exitCode, stdout } = await sallyport(['--help'])
    assert.equal(exitCode, 0)
    for (const name of commandNames) assert.match(stdout, new RegExp(`^  ${name} +\\S`, 'm'))
    assert.deepEqual(await sallyport([]), { exitCode: 2, stdout, stderr: '' })
    assert.equal((await sallyport(['help'])).stdout, stdout)
  })

  it('lists the commands by purpose, each once, and those for newcomers first', async () => {
    const { stdout } = await sallyport(['--help'])
    const listed = [...stdout.matchAll(/^ {2}(\S+(?: \S+)*) {2,}\S/gm)].map(([, name]) => name)
    assert.deepEqual(listed, commandNames)
    assert.match(
      stdout,
      /\n\nFirst steps:\n {2}start .*\n {2}client add .*\n {2}launch .*\n {2}problems .*\n {2}check /,
    )
  })

  it('calls an app an app and a sign-in a sign-in, in the help of every command', async () => {
    const terms = `${commandNames.join('|')}|client (id|credentials)|(--|post-|smart\\.)[\\w.-]+|test login`
    for (const name of commandNames) {
      const { stdout } = await sallyport([...name.split(' '), '--help'])
      const text = stdout
        .replace(/^ *Usage:[\s\S]*?\n\n|^ {2}--kind <which>.*/gm, '')
        .replace(/\s+/g, ' ')
        .replace(new RegExp(terms, 'g'), '')
      assert.doesNotMatch(text, /\b(clients?|logins?|log(ged)? (in|out)|logout)\b/i, name)
    }
  })

  it('prints help in 80 columns, for every command', async () => {
    const groups = new Set(
      commandNames.flatMap(name => (name.split(' ')[1] === undefined ? [] : [name.split(' ')[0] ?? ''])),
    )
    for (const name of ['', ...groups, ...commandNames]) {
      const { stdout } = await sallyport([...name.split(' ').filter(Boolean), '--help'])
      assert.deepEqual(
        stdout.split('\n').filter(line => line.length > 80),
        [],
        name,
      )
      assert.match(stdout, /^Usage: npm run -s sallyport -- /m)
    }
  })

  it('has a command for every list, row and operation that is one', () => {
    const names: readonly string[] = commandNames
    assert.deepEqual(
      [...LIST_COMMANDS, ...SHOW_COMMANDS, ...OPERATION_COMMANDS].filter(({ name }) => !names.includes(name)),
      [],
    )
  })

  it('accepts the options that a usage lists, and those of its first lines', () => {
    const usage = `
Usage: npm run -s sallyport -- tea [--milk] --to <url>
         [--sugar <r|s>] --cup 1

Not an option: --lemon <half>.

Options:
  --cup <number>      cups
  --scope "<scopes>"  scopes, see --lemon
  --no-milk           without`
    const value = { type: 'string', multiple: true }
    const flag = { type: 'boolean' }
    const options = { milk: flag, to: value, sugar: value, cup: value, scope: value, 'no-milk': flag }
    assert.deepEqual(readOptions(usage), options)
  })

  it('prints its version', async () => {
    assert.match((await sallyport(['--version'])).stdout, /^\d+\.\d+\.\d+\n$/)
  })

  for (const name of commandNames) {
    it(`explains ${name} with --help and help ${name}`, async () => {
      const { exitCode, stdout, stderr } = await sallyport([...name.split(' '), '--help'])
      assert.equal((await sallyport(['help', ...name.split(' ')])).stdout, stdout)
      assert.equal(exitCode, 0)
      assert.equal(stderr, '')
      assert.match(stdout, /^Usage: npm run -s sallyport -- /m)
    })
  }

  it('lists the commands of a group', async () => {
    const { exitCode, stdout } = await sallyport(['clinician', '--help'])
    assert.equal(exitCode, 0)
    assert.match(stdout, /clinician add[\s\S]*clinician list/)
    assert.doesNotMatch(stdout, /client add/)
    assert.equal((await sallyport(['clinician'])).exitCode, 2)
  })

  const wrong: readonly (readonly [args: string, line: RegExp])[] = [
    ['brew', /^Unknown command brew: see npm run -s sallyport -- --help\n$/],
    ['clinician brew', /^Unknown command clinician brew: see npm run -s sallyport -- clinician --help\n$/],
    ['clinican add', /^Unknown command clinican add, did you mean clinician add\?\n$/],
    ['udit', /^Unknown command udit, did you mean audit\?\n$/],
    ['client add --redirect-url x', /^Unknown option '--redirect-url', did you mean --redirect-uri\?\n$/],
    ['settings --brew', /^Unknown option '--brew': see npm run -s sallyport -- settings --help\n$/],
    ['settings now', /^Unexpected argument now: see npm run -s sallyport -- settings --help\n$/],
    [
      'clinician add --username',
      /^Option '--username <value>' argument missing: see npm run -s sallyport -- clinician add --help\n$/,
    ],
    ['start tea', /^Unknown server tea: expected auth, fhir, app\n$/],
  ]
  for (const [args, line] of wrong) {
    it(`exits with 2 and one line at "${args}" (CLI-2)`, async () => {
      const { exitCode, stdout, stderr } = await sallyport(args.split(' '))
      assert.equal(exitCode, 2)
      assert.match(stderr, line)
      assert.equal(stdout, '')
    })
  }

  it('exits with 1 and one line at a bad setting, in every command that reads settings (START-7)', async () => {
    for (const args of [['settings'], ['start'], ['clinician', 'list'], ['client', 'remove', 'x']]) {
      const { exitCode, stdout, stderr } = await sallyport(args, { env: { SMART_AUTH_PORT: 'high' } })
      assert.equal(exitCode, 1)
      assert.equal(
        stderr,
        'Cannot use SMART_AUTH_PORT: expected a whole number from 1 to 65535, got "high"\n',
      )
      assert.equal(stdout, '')
    }
  })

  it('prints a warning about the settings once', async test => {
    const cwd = mkdtempSync(join(tmpdir(), 'sallyport-warning-'))
    test.after(() => rmSync(cwd, { recursive: true }))
    const env = { SMART_DATA_DIR: cwd, SMART_COLOUR: 'red' }
    for (const args of [
      ['client', 'list'],
      ['client', 'show', 'x'],
      ['client', 'disable', 'x'],
      ['clinician', 'list'],
    ]) {
      const { stderr } = await sallyport(args, { env, cwd })
      assert.equal(stderr.match(/SMART_COLOUR/g)?.length, 1, args.join(' '))
    }
  })

  for (const args of [['client', 'list'], ['clinician', 'list'], ['audit'], ['grant', 'list']])
    it(`works before the first start: ${args.join(' ')} (CLI-1)`, async () => {
      const empty = mkdtempSync(join(tmpdir(), 'sallyport-first-'))
      const { exitCode, stderr } = await sallyport(args, { cwd: empty })
      rmSync(empty, { recursive: true })
      assert.equal(exitCode, 0, stderr)
      assert.match(stderr, /^New data folder: /)
    })

  it('exits with 1 and one line if the database cannot be opened', async () => {
    const { exitCode, stderr } = await sallyport(['client', 'list'], {
      env: { SMART_DATABASE_URL: 'sqlite:/dev/null/x.db' },
    })
    assert.equal(exitCode, 1)
    assert.match(stderr, /^Cannot open database \/dev\/null\/x\.db: .+\n$/)
  })
})

describe('sallyport start', () => {
  const tells: readonly (readonly [env: Readonly<Record<string, string>>, lines: readonly string[]])[] = [
    [
      { SMART_BIND: '0.0.0.0', SMART_ALLOW_HTTP: 'true' },
      [
        'Cannot start: SMART_ISSUER_URL must be set off loopback',
        'Cannot start: SMART_FHIR_BASE_URL must be set off loopback',
        'Cannot start: SMART_APP_URL must be set off loopback',
        'Cannot start: SMART_CLIENT_LAUNCH_URL must be set off loopback',
        'Cannot start: SMART_SECRET must be set off loopback',
      ],
    ],
    [
      { SMART_AUTH_PORT: '0', SMART_LOG_LEVEL: 'warn', SMART_ALLOW_HTTP: 'yes' },
      [
        'Cannot use SMART_AUTH_PORT: expected a whole number from 1 to 65535, got "0"',
        'Cannot use SMART_ALLOW_HTTP: expected true or false, got "yes"',
      ],
    ],
  ]
  for (const [env, lines] of tells) {
    it(`exits with 1 and a line for each of ${lines.length} problems`, async () => {
      const { exitCode, stdout, stderr } = await sallyport(['start'], { env })
      assert.deepEqual(stderr.split('\n'), [...lines, ''])
      assert.equal(exitCode, 1)
      assert.equal(stdout, '')
    })
  }

  const refuses: readonly (readonly [env: Readonly<Record<string, string>>, line: RegExp])[] = [
    [{ SMART_CONFIG: 'missing.yaml' }, /^Cannot read settings file missing\.yaml: ENOENT/],
    [
      { ...https, SMART_TLS_CERT: 'no.pem', SMART_TLS_KEY: 'no.pem' },
      /^Cannot read SMART_TLS_CERT .*no\.pem: ENOENT$/,
    ],
    [
      { ...https, SMART_TLS_CERT: import.meta.filename, SMART_TLS_KEY: import.meta.filename },
      /^Cannot use SMART_TLS_CERT with SMART_TLS_KEY: .*PEM/,
    ],
    [{ SMART_POLICY_FILE: 'no.yaml' }, /^Cannot read policy file .*no\.yaml: ENOENT/],
    [
      { SMART_POLICY_FILE: import.meta.filename },
      /^Cannot (?:read|use) policy file .*command-line\.test\.ts: /,
    ],
    [
      { SMART_FHIR_UPSTREAM_URL: 'http://localhost:1', SMART_FHIR_UPSTREAM_AUTH: 'bearer' },
      /SMART_FHIR_UPSTREAM_AUTH=bearer needs SMART_FHIR_UPSTREAM_TOKEN$/,
    ],
  ]
  for (const [env, line] of refuses) {
    it(`exits with 1 and one line with ${Object.keys(env).at(-1)}`, async () => {
      const { exitCode, stdout, stderr } = await sallyport(['start'], { env })
      assert.match(stderr.replace(/\n$/, ''), line)
      assert.doesNotMatch(stderr, /\n./)
      assert.equal(exitCode, 1)
      assert.equal(stdout, '')
    })
  }
})
