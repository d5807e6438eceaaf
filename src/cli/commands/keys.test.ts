import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { sallyport } from '../../../test/support/command-line.ts'
import { openStore } from '../../store/index.ts'

const cwd = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
after(() => rmSync(cwd, { recursive: true, force: true }))
const run = (...args: readonly string[]) => sallyport(args, { env: {}, cwd })

describe('sallyport keys', () => {
  it('rotates before and after the first start, and lists current, retired and next keys', async () => {
    const first = await run('keys', 'rotate')
    assert.equal(first.exitCode, 0, first.stderr)
    assert.match(first.stdout, /^New tokens are signed with a new key from \d{4}-\d\d-\d\dT/)
    assert.equal((await run('keys', 'rotate')).exitCode, 0)
    const { stdout } = await run('keys', 'list')
    const [head = '', newest = '', older = ''] = stdout.split('\n')
    assert.match(head, /^KID +STATE +MADE +SIGNS FROM +RETIRED$/)
    assert.match(newest, /^[\w-]{43} +next /)
    assert.match(older, /^[\w-]{43} +next .*Z$/)
    assert.doesNotMatch(stdout, /"d"|private/)
  })

  it('names the key that signs now', async () => {
    const store = await openStore(`sqlite:${join(cwd, 'data', 'sallyport.db')}`)
    await store.db.updateTable('signing_key').set({ signs_from: 1 }).execute()
    await store.close()
    const [, newest = '', older = ''] = (await run('keys', 'list')).stdout.split('\n')
    assert.match(newest, / signs /)
    assert.match(older, / retired /)
  })

  it('withdraws a key and deletes it', async () => {
    const signing = / *(\S+) +signs /.exec((await run('keys', 'list')).stdout)?.[1] ?? ''
    assert.deepEqual(await run('keys', 'withdraw', `--kid=${signing}`), {
      exitCode: 0,
      stdout: `Withdrew key ${signing}. New tokens are signed with a new key.\n`,
      stderr: '',
    })
    const { stdout } = await run('keys', 'list')
    assert.equal(stdout.includes(signing), false)
    assert.match(stdout, / signs /)
    assert.deepEqual(await run('keys', 'withdraw', '--', signing), {
      exitCode: 1,
      stdout: '',
      stderr: `Cannot withdraw key: there is no key ${signing}\n`,
    })
  })

  it('creates no key that the servers cannot decrypt, and starts over with another secret on request', async () => {
    const env = { SMART_SECRET: 'not the secret of the servers' }
    const withOther = (...args: readonly string[]) => sallyport(args, { env, cwd })
    const before = (await run('keys', 'list')).stdout
    const kid = / *(\S+) +signs /.exec(before)?.[1] ?? ''
    for (const args of [['rotate'], ['withdraw', `--kid=${kid}`]]) {
      const { exitCode, stderr } = await withOther('keys', ...args)
      assert.equal(exitCode, 1)
      assert.match(stderr, /^Cannot .*: the keys are encrypted with another SMART_SECRET\. .*\n$/)
    }
    assert.equal((await withOther('keys', 'withdraw', `--kid=${kid}`, '--all')).exitCode, 2)
    assert.match((await withOther('keys', 'withdraw')).stderr, /^Missing --kid or --all: see .*--help\n$/)
    assert.equal((await run('keys', 'list')).stdout, before)

    const { stdout } = await withOther('keys', 'withdraw', '--all')
    assert.equal(stdout, 'Withdrew all keys. New tokens are signed with a new key.\n')
    assert.match((await run('keys', 'list')).stdout, /^KID.*\n\S+ +signs .*\n$/)
    assert.equal((await withOther('keys', 'rotate')).exitCode, 0)
    assert.equal((await run('keys', 'rotate')).exitCode, 1)
  })
})
