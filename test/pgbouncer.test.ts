import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { postgresDatabases } from './support/databases.ts'
import { freePorts } from './support/free-ports.ts'
import { HttpUser } from './support/http-user.ts'
import { query } from './support/postgres.ts'
import { newPlace, runProgram, startProcess } from './support/started.ts'

const PATH = `${process.env.PATH}:/usr/sbin`
/** PgBouncer refuses to run as root. */
const NOBODY = { uid: 65534, gid: 65534 }
const isInstalled = spawnSync('pgbouncer', ['--version'], { env: { PATH } }).status === 0
if (!isInstalled) process.stderr.write('NOT TESTED: PgBouncer, which is not installed\n')

describe('docs/production.md, PgBouncer in transaction mode', { skip: !isInstalled }, () => {
  const databases = postgresDatabases()
  let database: URL
  let pooler: ChildProcess
  let folder: string
  let url: string

  before(async () => {
    database = new URL(await databases.create('empty'))
    // Beside the folder of the test run, which another user may not enter.
    folder = mkdtempSync(join(dirname(tmpdir()), 'sallyport-pgbouncer-'))
    const [port = 0] = await freePorts(1)
    writeFileSync(join(folder, 'users.txt'), '"postgres" ""\n')
    writeFileSync(join(folder, 'pgbouncer.ini'), configure(database, port, folder))
    chmodSync(folder, 0o755)
    const isRoot = process.getuid?.() === 0
    if (isRoot) chownSync(folder, NOBODY.uid, NOBODY.gid)
    pooler = spawn('pgbouncer', [join(folder, 'pgbouncer.ini')], {
      env: { PATH },
      stdio: 'ignore',
      ...(isRoot && NOBODY),
    })
    url = `postgres://postgres@127.0.0.1:${port}/sallyport`
    await answers(url)
  })
  after(async () => {
    pooler?.kill('SIGINT')
    rmSync(folder, { recursive: true, force: true })
    await databases.remove()
  })

  it('migrates an empty database by two commands at once', async () => {
    const place = await newPlace({ SMART_DATABASE_URL: url })
    try {
      const ran = await Promise.all([1, 2].map(() => runProgram(['upgrade', 'apply'], place)))
      for (const { exitCode, stderr } of ran) assert.equal(exitCode, 0, stderr)
    } finally {
      place.remove()
    }
  })

  it('serves a launch, and leaves no lock behind', async () => {
    const place = await newPlace({ SMART_DATABASE_URL: url })
    const servers = startProcess(['start'], place)
    try {
      await servers.printed(/is running/)
      const user = new HttpUser({
        settings: { issuerUrl: place.authUrl, appUrl: place.appUrl },
        user: { username: 'clinician', password: 'sallyport', name: 'Dr. Robin Ahmadi' },
      })
      await user.signIn()
      await user.launch('patient-1')
      const statuses = await Promise.all(Array.from({ length: 40 }, () => user.api('summary')))
      assert.deepEqual([...new Set(statuses.map(({ status }) => status))], [200])
      const locks = await query(
        database.href,
        "select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())",
      )
      assert.equal(Number(locks[0]?.count), 0)
    } finally {
      servers.child.kill('SIGTERM')
      await servers.ended()
      place.remove()
    }
  })

  it('keeps the limit of time that the configuration sets', async () => {
    const [row] = await query(url, 'show statement_timeout')
    assert.equal(row?.statement_timeout, '15s')
  })
})

/** The configuration of the page, with the addresses of this test. */
function configure(server: URL, port: number, folder: string): string {
  const page = readFileSync(new URL('../docs/production.md', import.meta.url), 'utf8')
  const [, block = ''] = /^```ini\n(\[databases\][\s\S]*?)^```/m.exec(page) ?? []
  return `${block.replace(
    'host=db.ehr.example dbname=sallyport',
    `host=127.0.0.1 port=${server.port} dbname=${server.pathname.slice(1)}`,
  )}
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${folder}/users.txt
default_pool_size = 3
max_client_conn = 500
`
}

async function answers(url: string): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await query(url, 'select 1')
      return
    } catch (error) {
      if (tries === 200) throw error
      await pause(50)
    }
  }
}
