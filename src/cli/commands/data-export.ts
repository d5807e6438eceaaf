import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { describeExport } from '../../auth/index.ts'
import type { Settings } from '../../config/index.ts'
import { describeError, findCode, formatCount, HOW, isFailure } from '../../core/index.ts'
import type { ExportFiles, NotExported } from '../../export/index.ts'
import { isId, isResourceType } from '../../fhir/index.ts'
import type { LocalSelection } from '../../fhir-api/index.ts'
import {
  type Arguments,
  type Command,
  CommandFailure,
  failMisuse,
  getOptional,
  getSeveral,
  type Io,
  isSet,
} from '../command.ts'
import { findOperator } from '../operator.ts'
import { parseTime } from '../parse-time.ts'
import { createProgress, type Progress } from '../progress.ts'
import { createServiceAuthorization, SERVICE_OPTIONS } from '../service-credential.ts'
import { administer, loadSettings, nameDataFile, openAuditor, withStore } from '../with-store.ts'

const dataExport: Command = {
  usage: `
Usage: ${HOW} data export [options] <folder or file>

Writes the current version of every resource of the embedded server as NDJSON: to a new or empty folder, with one file for
each resource type and a manifest.json, or to a new file whose name ends with .ndjson or .ndjson.gz. Works while the servers
run, and while they are stopped: the export has the resources of one moment. The audit trail records it, also under the
patients. Files get their names when all are complete; if the export fails or is interrupted, nothing stays.

The files are a copy of patient data, which nothing protects but their permissions: only you can read them.

With --from, exports from the FHIR server at that base URL by its operation $export, as a backend service, with the Binaries
that documents name. If SMART_FHIR_UPSTREAM_URL has the same URL and there is no --client, uses the gateway's credentials.

To import them: data import <folder or file>

Options:
  --patient <id>        only the data of this patient, without resources that are also about others; may be repeated
  --group <id>          only the data of the active members of this Group
  --type <types>        only these resource types, separated by commas; may be repeated
  --since <when>        only resources written since then: 90s, 15m, 2h, 7d or a date. Deletions are not exported
  --gzip                compress the files
  --from <url>          export from the FHIR server at this base URL
${SERVICE_OPTIONS}

Exit code: 0 if everything was exported, otherwise 1.

Examples:
  ${HOW} data export backup/
  ${HOW} data export --from http://localhost:8080/fhir --client reports --key private.pem --kid reports-2026 backup/`,
  positionals: { min: 1, max: 1 },
  async run(args, io) {
    const [target = ''] = args.positionals
    const selection = readSelection(args)
    const settings = loadSettings(io)
    const from = readAddress(args)
    const dataFile = from === undefined ? findDataFile(settings) : undefined
    const { ExportFiles } = await import('../../export/index.ts')
    const progress = createProgress(io.stderr)
    const stop = new AbortController()
    const onSignal = () => stop.abort()
    for (const signal of SIGNALS) process.once(signal, onSignal)
    let files: ExportFiles | undefined
    try {
      const opened = ExportFiles.open(resolve(io.cwd, target), isSet(args, 'gzip'))
      if (isFailure(opened)) throw new CommandFailure(opened.text)
      files = opened
      const context = { args, io, settings, selection, files, progress, signal: stop.signal }
      const { resources, notes } =
        from !== undefined ? await exportRemote(context, from) : await exportLocal(context, dataFile ?? '')
      progress.end()
      io.stdout.write(`Exported ${formatCount(resources, 'resource')} to ${target}\n`)
      for (const note of notes) io.stderr.write(`Not exported: ${note}\n`)
      return notes.length > 0 ? 1 : 0
    } catch (error) {
      progress.end()
      files?.discard()
      throw new CommandFailure(
        `Cannot export to ${target}: ${stop.signal.aborted ? 'it was interrupted' : describeReason(error)}`,
      )
    } finally {
      for (const signal of SIGNALS) process.off(signal, onSignal)
    }
  },
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

interface Exporting {
  readonly args: Arguments
  readonly io: Io
  readonly settings: Settings
  readonly selection: LocalSelection
  readonly files: ExportFiles
  readonly progress: Progress
  readonly signal: AbortSignal
}

interface Exported {
  readonly resources: number
  readonly notes: readonly string[]
}

function readSelection(args: Arguments): LocalSelection {
  const patients = getSeveral(args, 'patient')
  const group = getOptional(args, 'group')
  const since = getOptional(args, 'since')
  const types = getSeveral(args, 'type').flatMap(it => it.split(','))
  for (const id of [...patients, ...(group === undefined ? [] : [group])])
    if (!isId(id)) throw failMisuse(`Cannot use ${id}: expected the id of a resource, such as patient-1`)
  for (const type of types)
    if (!isResourceType(type)) throw failMisuse(`Cannot use --type ${type}: it is not a type of FHIR R4`)
  return {
    group,
    ...(patients.length > 0 && { patients }),
    ...(types.length > 0 && { types }),
    ...(since !== undefined && { since: parseTime('since', since, Date.now()) }),
  }
}

const FOR_FROM = ['client', 'key', 'kid', 'secret-file', 'scope']

function readAddress(args: Arguments): string | undefined {
  const text = getOptional(args, 'from')
  const useless = FOR_FROM.find(name => text === undefined && getOptional(args, name) !== undefined)
  if (useless !== undefined) throw failMisuse(`Cannot use --${useless} without --from`)
  if (text === undefined) return undefined
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '' || url.username !== '')
    throw failMisuse('Cannot use --from: it is not an http or https URL')
  return url.href.replace(/\/+$/, '')
}

function findDataFile(settings: Settings): string {
  if (settings.fhir.upstreamUrl !== undefined)
    throw new CommandFailure(
      'Cannot export: SMART_FHIR_UPSTREAM_URL is set, so that server stores the data; specify it with --from',
    )
  const file = nameDataFile(settings)
  if (!existsSync(file)) throw new CommandFailure(`Cannot export: there is no ${file}`)
  return file
}

async function exportLocal(context: Exporting, file: string): Promise<Exported> {
  const { io, settings, selection, files, progress, signal } = context
  // Whatever happens afterwards, the trail has the attempt.
  await administer(io, 'data export', async () => {})
  const { openRepository } = await import('../../backends/sqlite/index.ts')
  const { exportStore } = await import('../../export/index.ts')
  using repository = openRepository({ file, baseUrl: settings.fhirBaseUrl })
  const resources = await exportStore({
    repository,
    clock: Date.now,
    files,
    selection,
    signal,
    recordPatients: patients => recordPatients(io, patients),
    onProgress: progress.show,
  })
  if (isFailure(resources)) throw new CommandFailure(resources.text)
  return { resources, notes: [] }
}

function recordPatients(io: Io, patients: readonly string[]): Promise<void> {
  const record = describeExport(patients, findOperator(io), Date.now())
  return withStore(io, (store, settings) =>
    store.db.transaction().execute(trx => openAuditor(settings, store).recordIn(trx, record)),
  )
}

async function exportRemote(context: Exporting, base: string): Promise<Exported> {
  const { args, io, settings, selection, files, progress, signal } = context
  const { exportFrom } = await import('../../export/index.ts')
  const authorization = await createServiceAuthorization(args, io, base, settings)
  const done = await exportFrom({
    base,
    fetch: (url, init) => fetch(url, init).catch(error => failUnreachable(base, error)),
    authorization,
    files,
    selection,
    signal,
    wait: ms => setTimeout(ms, undefined, { signal }),
    onProgress: progress.show,
    onPreparing: text => progress.say(`Waiting for ${base}: ${text}`),
  })
  if (!isFailure<Exported | NotExported, NotExported>(done)) return done
  throw new CommandFailure(`${base}: ${done.text}`)
}

function failUnreachable(base: string, error: unknown): never {
  if (!(error instanceof TypeError)) throw error
  throw new TypeError(`Cannot reach ${base}: ${findCode(error.cause) ?? describeError(error)}`)
}

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: 'no space is left on the disk',
  EDQUOT: 'the quota of the disk is used up',
  EROFS: 'the disk cannot be written to',
  EACCES: 'permission is denied',
  EPERM: 'permission is denied',
  EEXIST: 'another export writes there',
  ENOTDIR: 'a part of the path is not a folder',
  EIO: 'the disk does not work',
}

function describeReason(error: unknown): string {
  if (error instanceof CommandFailure) return error.message
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
  const code = findCode(cause)
  return (code !== undefined && REASONS[code]) || (code ?? describeError(error))
}

export const commands = { 'data export': dataExport }
