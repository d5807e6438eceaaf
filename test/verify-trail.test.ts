import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, describe, it } from 'node:test'
import { createAuditor, sealTrail } from '../src/audit/index.ts'
import { createSealer, openStore } from '../src/store/index.ts'

const SCRIPT = resolve(import.meta.dirname, '../deploy/audit/verify-trail.sh')
const MAIN = resolve(import.meta.dirname, '../src/cli/main.ts')
const SECRET = 'a secret of the tests, long enough'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const url = `sqlite:${join(folder, 'test.db')}`
const kept = join(folder, 'kept')
const bin = join(folder, 'bin')
mkdirSync(bin)
writeFileSync(join(bin, 'sallyport'), `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`, {
  mode: 0o755,
})

const env = {
  PATH: `${bin}:${process.env.PATH}`,
  SMART_DATABASE_URL: url,
  SMART_DATA_DIR: folder,
  SMART_SECRET: SECRET,
}

/** A run a number of seconds ago. */
const run = (secondsAgo: number) =>
  spawnSync(SCRIPT, [kept], {
    env: { ...env, LATE_SECONDS: String(secondsAgo) },
    cwd: folder,
    encoding: 'utf8',
  })

describe('deploy/audit/verify-trail.sh', () => {
  it('exports each record once, keeps the heads, and fails if the end of the trail is missing', {
    skip: process.platform !== 'linux' && 'it needs the date command of Linux',
  }, async () => {
    const store = await openStore(url)
    const sealer = createSealer(SECRET)
    const audit = createAuditor({ store })
    const record = { server: 'auth', kind: 'login', allowed: true, status: 302 } as const
    const seconds = Math.floor(Date.now() / 1000) * 1000
    await audit.record({ ...record, at: seconds - 90_000 }, { ...record, at: seconds - 45_000 })
    await sealTrail(store, sealer)
    const first = run(60)
    assert.equal(first.status, 0, first.stderr)
    await audit.record({ ...record, at: seconds - 30_000 })
    await sealTrail(store, sealer)
    const second = run(20)
    assert.equal(second.status, 0, second.stderr)
    const files = readdirSync(kept)
    const exports = files.filter(name => name.endsWith('.ndjson'))
    const counts = exports.map(name => readFileSync(join(kept, name), 'utf8').split('\n').length - 1)
    assert.deepEqual([files.length, counts[0]], [4, 1])
    assert.equal(counts[1], 2)
    const checked = spawnSync(join(bin, 'sallyport'), ['audit', 'check-file', join(kept, exports[1] ?? '')], {
      env,
    })
    assert.equal(checked.status, 0)

    const db = await store.trail.read()
    await db
      .deleteFrom('audit_event')
      .where('at', '>', seconds - 60_000)
      .execute()
    await db.deleteFrom('audit_seal').where('number', '>', 1).execute()
    await store.close()
    const third = run(10)
    assert.equal(third.status, 1)
    assert.match(third.stderr, /missing|removed/)
    assert.equal(readdirSync(kept).length, 4)
  })
})
