import { appendFileSync, closeSync, existsSync, mkdirSync, openSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { setImmediate } from 'node:timers/promises'
import { sql, type Transaction } from 'kysely'
import type { Repository } from '../../backends/sqlite/index.ts'
import { FOR_TESTS, type Settings } from '../../config/index.ts'
import { describeError, HOW, hasCode } from '../../core/index.ts'
import { revokeGrantTokens, type Schema } from '../../store/index.ts'
import { type Arguments, type Command, CommandFailure, failMisuse, type Io, isSet } from '../command.ts'
import { requireDeveloperTools } from '../require-developer-tools.ts'
import { Closing } from '../start/parts.ts'
import { loadSamplePatients } from '../start/sample-patients.ts'
import { administer, loadSettings, nameDataFile, prepareDataFile, withSealer } from '../with-store.ts'

const dataExport: Command = {
  busy: 'Exporting',
  usage: `
Usage: ${HOW} data export <file or folder>

Writes the current version of every resource of the embedded server as NDJSON: to a file whose name ends with .ndjson, or
to a folder with one file for each resource type. Overwrites no file. Works while the servers run: the export has the
resources of one moment. The audit trail records it. The files contain patient data that everyone who can read them can see.

To import them: data import <file or folder>

Example:
  ${HOW} data export backup/`,
  positionals: { min: 1, max: 1 },
  async run({ positionals: [target = ''] }, io) {
    const settings = loadSettings(io)
    const file = findExported(settings)
    await administer(io, 'data export', async () => {})
    const { openRepository } = await import('../../backends/sqlite/index.ts')
    const repository = openRepository({ file, baseUrl: settings.fhirBaseUrl })
    try {
      const count = await exportTo(resolve(io.cwd, target), repository)
      io.stdout.write(`Exported ${count.toLocaleString('en')} resources to ${target}\n`)
      return 0
    } catch (error) {
      throw new CommandFailure(`Cannot export to ${target}: ${describeReason(error)}`)
    } finally {
      repository.close()
    }
  },
}

function findExported(settings: Settings): string {
  if (settings.fhir.upstreamUrl !== undefined)
    throw new CommandFailure('Cannot export: SMART_FHIR_UPSTREAM_URL is set, so that server stores the data')
  const file = nameDataFile(settings)
  if (!existsSync(file)) throw new CommandFailure(`Cannot export: there is no ${file}`)
  return file
}

async function exportTo(path: string, repository: Repository): Promise<number> {
  const isFile = path.endsWith('.ndjson') && !(existsSync(path) && statSync(path).isDirectory())
  if (!isFile) mkdirSync(path, { recursive: true })
  const files = new Map<string, LineWriter>()
  let count = 0
  try {
    for (const { type, content } of repository.listCurrent()) {
      const name = isFile ? path : join(path, `${type}.ndjson`)
      const file = files.get(name) ?? openLines(name)
      files.set(name, file)
      file.write(content)
      count++
      // Lets the terminal show that the export goes on.
      if (count % 1000 === 0) await setImmediate()
    }
    return count
  } finally {
    for (const file of files.values()) file.close()
  }
}

interface LineWriter {
  write(line: string): void
  close(): void
}

const CHUNK = 65_536

/** Fails if the file exists. */
function openLines(path: string): LineWriter {
  const file = openSync(path, 'wx')
  let chunk = ''
  const flush = () => {
    appendFileSync(file, chunk)
    chunk = ''
  }
  return {
    write(line) {
      chunk += `${line}\n`
      if (chunk.length >= CHUNK) flush()
    },
    close() {
      flush()
      closeSync(file)
    },
  }
}

function describeReason(error: unknown): string {
  const isKnown = hasCode(error, 'EEXIST') && error instanceof Error && 'path' in error
  return isKnown ? `${error.path} exists` : describeError(error)
}

const dataReset: Command = {
  usage: `
Usage: ${HOW} data reset [--all] [--yes]

Removes all FHIR resources of the embedded server, with their history, and creates the sample patients again. Works while the
servers run. ${FOR_TESTS}

Options:
  --all  also remove all apps, users, sign-ins and sessions, and revoke all tokens; the demo app and the test login are
         created again. Signing keys and the audit trail stay
  --yes  do not ask`,
  async run(args, io) {
    const settings = loadSettings(io)
    checkResettable(settings)
    await confirm(args, io)
    const removesAll = isSet(args, 'all')
    await administer(io, removesAll ? 'data reset --all' : 'data reset', async trx => {
      if (removesAll) await removeRegistered(trx)
    })
    if (removesAll) await makeFirstRows(settings)
    await resetResources(settings, io)
    io.stdout.write('Reset\n')
    return 0
  },
}

function checkResettable(settings: Settings): void {
  requireDeveloperTools(settings, 'reset')
  const { fhir } = settings
  if (fhir.upstreamUrl !== undefined)
    throw new CommandFailure('Cannot reset: SMART_FHIR_UPSTREAM_URL is set, so that server stores the data')
}

async function confirm(args: Arguments, io: Io): Promise<void> {
  if (isSet(args, 'yes')) return
  if (!io.stdin.isTTY) throw failMisuse('Missing --yes: the command removes all FHIR resources')
  io.stderr.write('Remove all FHIR resources? Type yes: ')
  const lines = createInterface({ input: io.stdin })
  const { value } = await lines[Symbol.asyncIterator]().next()
  lines.close()
  if (value !== 'yes') throw new CommandFailure('Not reset')
}

/** Everything that belongs to a client or a clinician; keys and the audit trail stay. */
async function removeRegistered(trx: Transaction<Schema>): Promise<void> {
  const { deleteClient } = await import('../../auth/index.ts')
  const clients = await trx.selectFrom('client').select('client_id').execute()
  for (const { client_id } of clients) await deleteClient(trx, client_id, Date.now())
  // Grants of apps that have many, which are otherwise removed in steps.
  await revokeGrantTokens(trx, sql`1 = 1`, Date.now())
  for (const table of REGISTERED) await trx.deleteFrom(table).execute()
}

const REGISTERED = [
  ...([
    'client',
    'clinician',
    'login_failure',
    'pending_login',
    'pending_sign_in',
    'launch_token',
    'authorization_request',
  ] as const),
  ...(['app_launch', 'app_session'] as const),
] satisfies readonly (keyof Schema)[]

async function makeFirstRows(settings: Settings): Promise<void> {
  const { initialize } = await import('../../auth/index.ts')
  await withSealer(settings, (store, sealer) => initialize({ settings, store, sealer }))
}

async function resetResources(settings: Settings, io: Io): Promise<void> {
  const { openRepository } = await import('../../backends/sqlite/index.ts')
  const dataFile = prepareDataFile(settings)
  const baseUrl = settings.fhirBaseUrl
  const repository = openRepository({ file: dataFile, baseUrl })
  try {
    repository.removeAll()
  } finally {
    repository.close()
  }
  const order = { dataFile, baseUrl, count: settings.fhir.samplePatients, now: Date.now() }
  await loadSamplePatients(order, new Closing(), line => io.stderr.write(`${line}\n`))
}

export const commands = { 'data export': dataExport, 'data reset': dataReset }
