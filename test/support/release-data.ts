/** The databases of a release, as its servers left them: `test/releases/<version>`. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { gunzipSync, gzipSync } from 'node:zlib'
import { listStatements } from '../../src/store/migration.ts'
import { migrations } from '../../src/store/migrations/index.ts'
import { HttpUser } from './http-user.ts'
import { query } from './postgres.ts'
import { newPlace, type Place, startProcess } from './started.ts'

export const SECRET = 'the secret of the databases of releases'
export const CLIENT = 'kept-app'

/** What the servers write: keys, accounts, an app, a launch with its session, resources, and records of all of it. */
export async function fillDatabases(place: Place): Promise<void> {
  const add = startProcess(
    [
      'client',
      'add',
      '--id',
      CLIENT,
      '--public',
      '--redirect-uri',
      'https://app.example/cb',
      '--scope',
      'patient/*.rs',
    ],
    place,
  )
  if ((await add.ended()).exitCode !== 0) throw new Error(`Cannot add an app: ${add.stderr()}`)
  const servers = startProcess(['start'], place)
  await servers.printed(/is running/)
  const user = visit(place)
  await user.signIn()
  await user.launch('patient-1')
  const summary = await user.api('summary')
  servers.child.kill('SIGTERM')
  await servers.ended()
  if (summary.status !== 200) throw new Error(`Cannot launch: ${summary.status}`)
}

export function visit({ authUrl, appUrl }: Place): HttpUser {
  const user = { username: 'clinician', password: 'sallyport', name: 'Dr. Robin Ahmadi' }
  return new HttpUser({ settings: { issuerUrl: authUrl, appUrl }, user })
}

/** Writes the databases of this version to a folder. */
export async function saveRelease(folder: string, postgresUrl: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const env = { SMART_SECRET: SECRET, SMART_SAMPLE_PATIENTS: '1' }
  const onSqlite = await newPlace(env)
  const onPostgres = await newPlace({ ...env, SMART_DATABASE_URL: postgresUrl })
  try {
    await fillDatabases(onSqlite)
    for (const name of ['sallyport.db', 'fhir.db']) saveFile(onSqlite, name, folder)
    await fillDatabases(onPostgres)
    writeFileSync(join(folder, 'postgres.sql.gz'), gzipSync(await dump(postgresUrl)))
  } finally {
    onSqlite.remove()
    onPostgres.remove()
  }
}

function saveFile({ env, folder }: Place, name: string, into: string): void {
  const copy = join(folder, `copy-${name}`)
  const database = new DatabaseSync(join(env.SMART_DATA_DIR ?? '', name))
  database.exec(`vacuum into '${copy}'`)
  database.close()
  writeFileSync(join(into, `${name}.gz`), gzipSync(readFileSync(copy)))
}

/** The statements that make the tables, and a statement for the rows of each. */
async function dump(url: string): Promise<string> {
  const tables = await query(
    url,
    `select table_name as name from information_schema.tables
      where table_schema = current_schema() and table_type = 'BASE TABLE'`,
  )
  const rows = []
  for (const { name } of tables) {
    const [row] = await query(url, `select coalesce(json_agg(t), '[]')::text as rows from "${name}" t`)
    const text = String(row?.rows).replaceAll("'", "''")
    rows.push(
      `insert into "${name}" overriding system value select * from json_populate_recordset(null::"${name}", '${text}')`,
    )
  }
  return [
    'create table schema_migration (name text primary key, needs text not null, applied_at bigint not null)',
    ...migrations.flatMap(step => listStatements(step, 'postgres')),
    "set session_replication_role = 'replica'",
    ...rows,
    ...(await listSequences(url)),
  ].join(';\n')
}

async function listSequences(url: string): Promise<readonly string[]> {
  const sequences = await query(
    url,
    'select sequencename as name, last_value as last from pg_sequences where schemaname = current_schema() and last_value is not null',
  )
  return sequences.map(({ name, last }) => `select setval('"${name}"', ${last})`)
}

/** Puts the databases of a release where the servers of a place look for them. */
export async function restoreRelease(folder: string, { env }: Place): Promise<void> {
  const read = (name: string) => gunzipSync(readFileSync(join(folder, `${name}.gz`)))
  const data = env.SMART_DATA_DIR ?? ''
  mkdirSync(data, { recursive: true })
  writeFileSync(join(data, 'fhir.db'), read('fhir.db'))
  const { SMART_DATABASE_URL: url } = env
  if (url === undefined) writeFileSync(join(data, 'sallyport.db'), read('sallyport.db'))
  else await query(url, read('postgres.sql').toString())
}
