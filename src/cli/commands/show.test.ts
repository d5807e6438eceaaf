import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { sallyport } from '../../../test/support/command-line.ts'
import { addBackend } from '../../auth/testing/backend.ts'
import { addExportJob } from '../../auth/testing/export-job.ts'
import { TestAuthServer } from '../../auth/testing/test-auth-server.ts'
import { openStore } from '../../store/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
const url = `sqlite:${join(folder, 'test.db')}`

describe('bulk-export show', () => {
  let auth: TestAuthServer
  before(async () => {
    auth = await TestAuthServer.open(await openStore(url))
    // Commands have no other clock.
    auth.time.now = Date.now()
    await addBackend(auth, 'nightly', 'system/*.rs')
    await addExportJob(auth, { id: 'tonight', client_id: 'nightly', files: 3 })
    await addExportJob(auth, { id: 'another', client_id: 'nightly' })
  })
  after(async () => {
    await auth.store.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const run = (...args: readonly string[]) =>
    sallyport(['bulk-export', ...args], { env: { SMART_DATABASE_URL: url, SMART_DATA_DIR: folder } })

  it('prints the members that the administration API returns (ADMIN-20)', async () => {
    const { stdout } = await run('show', 'tonight')
    assert.match(
      stdout,
      /^id +tonight\nclient_id +nightly\nlevel +group\ntypes +Condition Patient\nstate +ready\n(?:asked_at .*\n)?files +3\nstarted_at +\S+Z\nexpires_at +\S+Z\n$/,
    )
    const { items } = JSON.parse((await run('list', '--json')).stdout)
    const shown = JSON.parse((await run('show', '--id', 'tonight', '--json')).stdout)
    assert.deepEqual(
      shown,
      items.find((it: { readonly id: string }) => it.id === 'tonight'),
    )
  })

  it('fails for an export that has ended or expired', async () => {
    assert.equal((await run('end', 'another')).exitCode, 0)
    const { exitCode, stderr } = await run('show', 'another')
    assert.equal(exitCode, 1)
    assert.match(stderr, /Cannot show export: there is no export another/)
  })
})
