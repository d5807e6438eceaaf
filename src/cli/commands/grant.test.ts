import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { sallyport } from '../../../test/support/command-line.ts'
import { findRecords } from '../../audit/index.ts'
import { TestAuthServer } from '../../auth/testing/test-auth-server.ts'
import { openStore } from '../../store/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
const url = `sqlite:${join(folder, 'test.db')}`

describe('who has access now, on the command line', () => {
  let auth: TestAuthServer
  before(async () => {
    auth = await TestAuthServer.open(await openStore(url))
    // Commands have no other clock.
    auth.time.now = Date.now()
    await auth.addClient({
      client_id: 'nightly',
      name: 'Nightly',
      auth_method: 'private_key_jwt',
      scope: 'system/*.rs',
    })
    await auth.addClient({
      client_id: 'tickets',
      name: 'Tickets',
      auth_method: 'private_key_jwt',
      scope: 'sallyport/admin',
    })
    await auth.exchange(await auth.getCode(await auth.logIn()))
  })
  after(async () => {
    await auth.store.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const run = (...args: readonly string[]) =>
    sallyport(args, { env: { SMART_DATABASE_URL: url, SMART_DATA_DIR: folder } })
  const read = async (...args: readonly string[]) => JSON.parse((await run(...args, '--json')).stdout)
  const findLast = async () =>
    (await findRecords(auth.store, { events: [{ kind: 'admin' }], limit: 1 }))[0]?.request

  it('is listed by user, app and patient, with the apps that need no user (REVOKE-3)', async () => {
    const { stdout } = await run('grant', 'list')
    assert.match(stdout, /^ID +APP +USER +PATIENT +GRANTED +LAST USED +SCOPES\n/)
    assert.match(stdout, /\n\S+ +sallyport-app +clinician +juniper +\d{4}-\S+Z +\S+Z +launch /)
    assert.match(stdout, /\n- +nightly +\(no user\) +every +- +- +system\/\*\.rs\n/)
    assert.match(stdout, /\n- +tickets +\(no user\) +none +- +- +sallyport\/admin\n$/)
    const count = async (...args: readonly string[]) => {
      const { items, services } = await read('grant', 'list', ...args)
      return [items.length, services.length]
    }
    assert.deepEqual(await count(), [1, 2])
    assert.deepEqual(await count('--user', 'clinician'), [1, 0])
    assert.deepEqual(await count('--client', 'Nightly'), [0, 1])
    assert.deepEqual(await count('--patient', 'Patient/juniper'), [1, 1])
    assert.deepEqual(await count('--patient', 'ashlar'), [0, 1])
    for (const unknown of [
      ['--user', 'eve'],
      ['--client', 'none'],
    ])
      assert.equal((await run('grant', 'list', ...unknown)).exitCode, 1)
  })

  it('ends by the id of a grant or a sign-in, which is recorded (ADMIN-3)', async () => {
    const [{ id }] = (await read('grant', 'list')).items
    assert.deepEqual(await run('grant', 'revoke', id), {
      exitCode: 0,
      stdout: `Revoked grant ${id}\n`,
      stderr: '',
    })
    assert.equal(await findLast(), `grant revoke ${id}`)
    assert.equal((await run('grant', 'revoke', id)).exitCode, 1)
    assert.deepEqual((await read('grant', 'list')).items, [])

    const { stdout } = await run('sign-in', 'list', '--user', 'clinician')
    assert.match(stdout, /^ID +USER +SIGNED IN +LAST USED +ADDRESS +BROWSER\n\S+ +clinician +/)
    const [signIn] = (await read('sign-in', 'list')).items
    assert.equal((await run('sign-in', 'end', signIn.id)).stdout, 'Ended the sign-in of clinician\n')
    assert.equal(await findLast(), 'clinician end-sign-in clinician')
    assert.equal((await run('sign-in', 'list')).stderr, 'Nobody is signed in.\n')
    assert.equal(
      (await run('sign-in', 'end', signIn.id)).stderr,
      'Cannot end sign-in: the sign-in has ended\n',
    )
  })
})
