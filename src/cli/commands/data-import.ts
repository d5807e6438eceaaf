import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Settings } from '../../config/index.ts'
import { describeError, findCode, formatCount, HOW, hasCode, isFailure } from '../../core/index.ts'
import type { FoundFiles, ImportReport, Reason, SentReport, Unreadable } from '../../import/index.ts'
import { type Command, CommandFailure, getText } from '../command.ts'
import { createProgress, type Progress } from '../progress.ts'
import { createUpstreamAuthorization } from '../upstream-authorization.ts'
import { loadSettings, prepareDataFile } from '../with-store.ts'

const dataImport: Command = {
  usage: `
Usage: ${HOW} data import [--to <url>] <file or folder>...

Reads NDJSON, Bundles (collection, transaction, batch, searchset, document) and single resources, plain or compressed with
gzip, and folders of these with their subfolders. Works while the servers run, while they are stopped, and before the
first start. Resources keep their ids. You can repeat an import: a resource with the same content stays unchanged. Prints
a report that lists refused resources by reason, with file and line or entry of the first ones. A Bundle may have 128 MiB,
a line of NDJSON 32 MiB; a file of NDJSON has no limit.

With --to, checks the resources in the same way and sends them to the FHIR server at that base URL, for example the
upstream of the gateway: referenced resources first, resources that refer to each other as one transaction. Sends refused
resources again once others are stored, and prints the server's reasons. If SMART_FHIR_UPSTREAM_URL has the same URL, uses
the gateway's credentials.

Exit code: 0 if everything was imported, 1 if a resource was refused or a file could not be read.

Example:
  ${HOW} data import export/ extra.ndjson.gz`,
  positionals: { min: 1, max: 1000 },
  async run(args, io) {
    const settings = loadSettings(io)
    const to = getText(args, 'to')
    if (settings.fhir.upstreamUrl !== undefined && to === undefined)
      throw new CommandFailure(
        'Cannot import: SMART_FHIR_UPSTREAM_URL is set, so that server stores the data; specify it with --to',
      )
    const { findFiles } = await import('../../import/index.ts')
    const found = await findFiles(args.positionals, io.cwd)
    if (found.files.length === 0) throw new CommandFailure(describeNothingFound(found))
    const started = performance.now()
    const progress = createProgress(io.stderr)
    const report =
      to !== undefined
        ? await importTo(to, settings, found, progress)
        : await importInto(settings, found, progress)
    io.stdout.write(formatReport(report, found.skipped, performance.now() - started))
    return report.refused > 0 || report.unreadable.length > 0 ? 1 : 0
  },
}

async function importInto(settings: Settings, found: FoundFiles, progress: Progress): Promise<ImportReport> {
  const { openRepository } = await import('../../backends/sqlite/index.ts')
  const { importFiles } = await import('../../import/index.ts')
  const file = prepareDataFile(settings)
  try {
    const repository = openRepository({ file, baseUrl: settings.fhirBaseUrl })
    try {
      const report = await importFiles({ files: found.files, repository, onProgress: progress.show })
      return { ...report, unreadable: [...found.unreadable, ...report.unreadable] }
    } finally {
      progress.end()
      repository.close()
    }
  } catch (error) {
    throw isDatabaseFailure(error)
      ? new CommandFailure(`Cannot write ${file}: ${describeError(error)}`)
      : error
  }
}

function isDatabaseFailure(error: unknown): boolean {
  return hasCode(error, 'ERR_SQLITE_ERROR')
}

function describeNothingFound({ unreadable, skipped }: FoundFiles): string {
  const [first] = unreadable
  if (first !== undefined) return `Cannot read ${first.file}: ${first.reason}`
  return `Cannot import: no file is named .ndjson, .jsonl or .json (or these with .gz); ${skipped} skipped`
}

/**
 * Imports into a temporary repository, which checks every resource, and sends the accepted resources to another
 * FHIR server.
 */
async function importTo(
  address: string,
  settings: Settings,
  found: FoundFiles,
  progress: Progress,
): Promise<ImportReport> {
  const to = URL.parse(address)
  if (!to || !/^https?:$/.test(to.protocol) || to.search !== '' || to.hash !== '')
    throw new CommandFailure('Cannot import: --to is not an http or https URL')
  const { openRepository } = await import('../../backends/sqlite/index.ts')
  const { importFiles, sendAll } = await import('../../import/index.ts')
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-import-'))
  const baseUrl = to.href.replace(/\/+$/, '')
  const repository = openRepository({ file: join(folder, 'fhir.db'), baseUrl })
  try {
    const read = await importFiles({ files: found.files, repository, onProgress: progress.show })
    const { getAuthorization: authorization } = await createUpstreamAuthorization(baseUrl, settings)
    const onProgress = (sent: number, total: number) => progress.show({ read: sent, total, resources: sent })
    const sent = await sendAll({ repository, to: baseUrl, fetch, authorization, onProgress })
    if (!isFailure(sent)) return joinReports(read, sent, found)
    const hint = suggestCredentials(sent.status, baseUrl === settings.fhir.upstreamUrl)
    throw new CommandFailure(`Cannot send to ${baseUrl}: ${sent.text}${hint}`)
  } catch (error) {
    if (error instanceof CommandFailure || !(error instanceof Error)) throw error
    throw new CommandFailure(
      `Cannot send to ${baseUrl}: ${findCode(error.cause) ?? describeError(error.cause ?? error)}`,
    )
  } finally {
    progress.end()
    repository.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function joinReports(read: ImportReport, sent: SentReport, found: FoundFiles): ImportReport {
  const byReason = Map.groupBy(sent.refused, describeRefusal)
  return {
    ...read,
    created: sent.created,
    updated: sent.updated,
    unchanged: sent.unchanged,
    refused: read.refused + sent.refused.length,
    reasons: [...read.reasons, ...byReason.entries().map(toReason)].toSorted((a, b) => b.count - a.count),
    unreadable: [...found.unreadable, ...read.unreadable],
  }
}

function toReason([text, refused]: readonly [string, SentReport['refused']]): Reason {
  return { text, count: refused.length, places: refused.slice(0, 3).map(it => it.reference) }
}

/** Without ids, so that the same reason for another resource is the same text. */
function describeRefusal({ reference, status, reason }: SentReport['refused'][number]): string {
  const [type, id = ''] = reference.split('/')
  const text = reason
    .replaceAll(/\b([A-Z][A-Za-z]+)\/[A-Za-z0-9.-]{1,64}/g, '$1/…')
    .replaceAll(createWordPattern(id), '…')
  const hint = /HAPI-0960\b/.test(reason) ? NUMERIC_IDS : ''
  return `${type}: server returned ${status}${text && `: ${text}`}${hint}`
}

function createWordPattern(text: string): RegExp {
  return new RegExp(`\\b${RegExp.escape(text)}\\b`, 'g')
}

const NUMERIC_IDS =
  '. To keep numeric ids, set hapi.fhir.client_id_strategy: ANY in the application.yaml of HAPI'

function suggestCredentials(status: number, isUpstream: boolean): string {
  if (status !== 401 && status !== 403) return ''
  return isUpstream
    ? '; check SMART_FHIR_UPSTREAM_AUTH and its settings'
    : '; set SMART_FHIR_UPSTREAM_URL to this URL, and SMART_FHIR_UPSTREAM_AUTH with its settings'
}

const REASONS_SHOWN = 20

/** Names files, lines and elements, never their values. */
export function formatReport(report: ImportReport, skipped: number, ms: number): string {
  const { created, updated, unchanged, refused, notResources } = report
  const all = created + updated + unchanged + refused
  const rows: readonly (readonly [string, number])[] = [
    ['created', created],
    ['updated', updated],
    ['unchanged', unchanged],
    ['refused', refused],
  ]
  const wide = all.toLocaleString('en').length
  return [
    `Read ${formatCount(all - notResources, 'resource')}${formatNotResources(notResources)} from ${formatCount(report.files, 'file')} in ${(ms / 1000).toFixed(1)} s`,
    ...rows.map(([name, count]) => `  ${name.padEnd(9)}  ${count.toLocaleString('en').padStart(wide)}`),
    ...formatReasons(report.reasons),
    ...formatUnreadable(report.unreadable),
    ...formatNotes(report.unresolved, skipped),
    '',
  ].join('\n')
}

function formatNotResources(count: number): string {
  if (count === 0) return ''
  return count === 1
    ? ', and 1 line or entry that is not a resource,'
    : `, and ${count.toLocaleString('en')} lines or entries that are not resources,`
}

function formatReasons(reasons: readonly Reason[]): string[] {
  if (reasons.length === 0) return []
  const rest = reasons.slice(REASONS_SHOWN).reduce((sum, { count }) => sum + count, 0)
  return [
    'Refused, by reason:',
    ...reasons
      .slice(0, REASONS_SHOWN)
      .map(reason => `  ${reason.count.toLocaleString('en')} x ${reason.text}${formatPlaces(reason)}`),
    ...(rest === 0
      ? []
      : [
          `  ${rest.toLocaleString('en')} x for ${formatCount(reasons.length - REASONS_SHOWN, 'other reason')}`,
        ]),
  ]
}

function formatPlaces({ places: first, count }: Reason): string {
  return ` (${first.join(', ')}${count > first.length ? ', …' : ''})`
}

function formatUnreadable(unreadable: readonly Unreadable[]): string[] {
  return unreadable.map(({ file, line, reason }) =>
    line === undefined || line === 0
      ? `Cannot read ${file}: ${reason}`
      : `Cannot read ${file} after line ${line}: ${reason}`,
  )
}

function formatNotes(unresolved: number, skipped: number): string[] {
  return [
    ...(unresolved === 0
      ? []
      : [
          `Kept ${formatCount(unresolved, 'conditional reference')} as written: no resource or several resources match`,
        ]),
    ...(skipped === 0
      ? []
      : [`Skipped ${formatCount(skipped, 'file')} not named .ndjson, .jsonl or .json (or these with .gz)`]),
  ]
}

export const commands = { 'data import': dataImport }
