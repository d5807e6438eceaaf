import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { hostname, tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { sallyport } from '../../../test/support/command-line.ts'
import { openStore } from '../../store/index.ts'
import { findOperator } from '../operator.ts'

const cwd = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
after(() => rmSync(cwd, { recursive: true, force: true }))
const run = (line: string, stdin = '') => sallyport(line.split(' '), { env: {}, cwd, stdin })

async function readDetails(): Promise<readonly unknown[]> {
  return (await readRecords()).map(({ details }) => JSON.parse(details ?? '{}'))
}

async function readRecords() {
  const store = await openStore(`sqlite:${join(cwd, 'data', 'sallyport.db')}`)
  const rows = await (await store.trail.read())
    .selectFrom('audit_event')
    .select(['details', 'request', 'reason', 'address'])
    .orderBy('id')
    .execute()
  await store.close()
  return rows
}

describe('sallyport clinician', () => {
  it('adds and removes administrators, with audit records (ADMIN-2)', async () => {
    const add = 'clinician add --username ada --display-name Ada --fhir-user p1 --admin'
    assert.equal((await run(add, 'correct horse\n')).exitCode, 0)
    assert.match(
      (await run('clinician list')).stdout,
      /ada +Ada +Practitioner\/p1 +active, administrator +none/,
    )
    const last = /^Note: no administrator is left; .* clinician set --username <name> --admin adds one\n$/
    for (const [line, note] of [
      ['clinician disable ada', last],
      ['clinician enable ada', /^$/],
      ['clinician set ada --no-admin', last],
    ] as const)
      assert.match((await run(line)).stderr, note, line)
    assert.match((await run('clinician list')).stdout, /ada +Ada +Practitioner\/p1 +active +none/)
    assert.deepEqual((await readDetails()).at(-1), { before: { admin: true }, after: { admin: false } })
    for (const [line, exitCode] of [
      ['clinician set ada', 2],
      ['clinician set ada --admin --no-admin', 2],
      ['clinician set eve --admin', 1],
    ] as const)
      assert.equal((await run(line)).exitCode, exitCode, line)
  })
})

describe('--clear', () => {
  it('removes a value of a clinician or of an account, and names the options that it knows (CLI-1)', async () => {
    assert.equal(
      (await run('clinician add --username cleo --display-name Cleo --fhir-user p2', 'correct horse\n'))
        .exitCode,
      0,
    )
    assert.equal((await run('clinician set cleo --clear fhir-user --display-name Cleopatra')).exitCode, 0)
    assert.deepEqual((await readDetails()).at(-1), {
      before: { displayName: 'Cleo', fhirUser: 'Practitioner/p2', records: true },
      after: { displayName: 'Cleopatra', fhirUser: '', records: false },
    })
    await run('account add --username rita --patient p3 --related-person r1', 'correct horse\n')
    assert.equal((await run('account set rita --clear related-person')).exitCode, 0)
    assert.deepEqual((await readDetails()).at(-1), {
      before: { relatedPersons: ['r1'] },
      after: { relatedPersons: [] },
    })
    const { exitCode, stderr } = await run('account set rita --clear display-name')
    assert.deepEqual([exitCode, stderr], [2, 'Cannot clear display-name: expected related-person\n'])
    await run('clinician remove cleo')
    await run('account remove rita')
  })
})

describe('sallyport clinician --auditor', () => {
  it('makes auditors, who are never administrators, with the roles in words (ADMIN-29)', async () => {
    const add = 'clinician add --username vera --display-name Vera --fhir-user p9'
    assert.equal((await run(`${add} --admin --auditor`, 'correct horse\n')).exitCode, 2)
    assert.equal((await run(`${add} --auditor`, 'correct horse\n')).exitCode, 0)
    assert.match((await run('clinician list')).stdout, /vera +Vera +Practitioner\/p9 +active, auditor/)
    for (const [option, role] of [
      ['--admin', 'auditor → administrator'],
      ['--auditor', 'administrator → auditor'],
      ['--no-auditor', 'auditor → user'],
    ] as const) {
      assert.equal((await run(`clinician set vera ${option}`)).exitCode, 0, option)
      assert.equal((await readRecords()).at(-1)?.reason, `Role: ${role}`, option)
    }
    assert.equal((await run('clinician set vera --admin --auditor')).exitCode, 2)
    assert.equal((await run('clinician remove vera')).exitCode, 0)
  })
})

describe('sallyport account', () => {
  it('resets the second factor of an account, disables, enables and removes it, and no clinician', async () => {
    await run('account add --username alba --patient p2', 'correct horse\n')
    const store = await openStore(`sqlite:${join(cwd, 'data', 'sallyport.db')}`)
    const users = await store.db.selectFrom('clinician').select(['id', 'username']).execute()
    for (const { id, username } of users)
      await store.db
        .insertInto('factor')
        .values({ id: username, clinician_id: id, kind: 'totp', name: 'Phone', created_at: 1 })
        .execute()
    const factors = () => store.db.selectFrom('factor').select('id').execute()
    const refused = await run('account reset-second-factor ada')
    assert.equal(refused.stderr, 'Cannot reset-second-factor account: there is no account ada\n')
    assert.deepEqual(await run('account reset-second-factor alba'), {
      exitCode: 0,
      stdout: 'Reset the second factor of account alba\n',
      stderr: '',
    })
    assert.deepEqual(await factors(), [{ id: 'ada' }])
    assert.deepEqual((await readRecords()).at(-1)?.request, 'account reset-second-factor alba')
    for (const verb of ['disable', 'enable', 'remove']) {
      assert.equal((await run(`account ${verb} ada`)).exitCode, 1, verb)
      assert.equal((await run(`account ${verb} alba`)).exitCode, 0, verb)
    }
    await store.close()
    assert.match((await run('clinician list')).stdout, /ada +Ada/)
  })
})

describe('the audit record of a command', () => {
  it('has the user of the operating system and the host (ADMIN-2)', async () => {
    assert.equal((await run('clinician set ada --admin')).exitCode, 0)
    assert.equal((await run('data reset --yes')).exitCode, 0)
    const { username } = userInfo()
    assert.deepEqual(
      (await readRecords()).slice(-2).map(({ request, address }) => [request, address]),
      ['clinician set ada', 'data reset'].map(command => [command, `${username}@${hostname()}`]),
    )
  })

  it('has the user who became root by sudo, whom only root may name', () => {
    const isRoot = process.getuid?.() === 0
    const operator = findOperator({ env: { SUDO_USER: 'alice' } })
    assert.equal(operator, `${isRoot ? 'alice as ' : ''}${userInfo().username}@${hostname()}`)
  })
})

describe('sallyport client', () => {
  it('registers a client of the administration API, which is not an app (ADMIN-1)', async () => {
    assert.match(
      (await run('client add --id console --admin --secret')).stdout,
      /^client_secret: [\w-]{43}$/m,
    )
    const { stdout } = await run('client show console')
    assert.match(stdout, /^scope +sallyport\/admin$/m)
    assert.match(stdout, /^permissions +Administers this server: users, apps, keys, audit; reads no record$/m)
    for (const rest of [
      '--admin --public',
      '--admin --secret --scope openid',
      '--admin --secret --redirect-uri https://a.example/',
      '--secret --scope sallyport/admin --redirect-uri https://a.example/',
    ])
      assert.equal((await run(`client add --id other ${rest}`)).exitCode, 2, rest)
  })

  it('registers a program that reads the administration, and changes nothing (ADMIN-31)', async () => {
    assert.equal((await run('client add --id siem --admin-read --secret')).exitCode, 0)
    assert.match((await run('client show siem')).stdout, /^scope +sallyport\/admin\.read$/m)
    for (const rest of ['--admin-read --public', '--admin-read --admin --secret'])
      assert.equal((await run(`client add --id other ${rest}`)).exitCode, 2, rest)
  })

  it('registers a FHIR server that sends audit records, which is not an app (AUDIT-24)', async () => {
    assert.equal((await run('client add --id my-server --audit --secret')).exitCode, 0)
    assert.match((await run('client show my-server')).stdout, /^scope +sallyport\/audit$/m)
    for (const rest of ['--audit --public', '--audit --admin --secret', '--audit --secret --scope openid'])
      assert.equal((await run(`client add --id other ${rest}`)).exitCode, 2, rest)
  })

  it('disables and enables an app', async () => {
    await run('client disable console')
    assert.match((await run('client list')).stdout, /console .* disabled/)
    assert.deepEqual(await run('client enable console'), {
      exitCode: 0,
      stdout: 'Enabled app console\n',
      stderr: '',
    })
    assert.match((await run('client list')).stdout, /console .* approved/)
  })
})
