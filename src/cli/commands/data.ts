import type { FoundFiles, ImportReport } from '../../backends/sqlite/import/index.ts'
import type { Settings } from '../../config/index.ts'
import { type Command, CommandFailure } from '../command.ts'
import { createProgress, formatReport, type Progress } from '../import/report-text.ts'
import { importTo } from '../import/send.ts'
import { findDataFile, loadSettings } from '../with-store.ts'

export const dataImport: Command = {
  usage: `
Usage: npm run -s sallyport -- data import [--to <url>] <file or folder>...

Reads NDJSON, Bundles (collection, transaction, batch, searchset, document) and single resources, plain or compressed with
gzip, and folders of these with their subfolders. Works while the servers run, while they are stopped, and before the
first start. Resources keep their ids. You can repeat an import: a resource with the same content stays unchanged. Prints
a report that lists refused resources by reason, with file and line of the first ones.

With --to, checks the resources in the same way and sends them to the FHIR server at that base URL, for example the
upstream of the gateway: referenced resources first, resources that refer to each other as one transaction. Sends refused
resources again once others are stored, and prints the server's reasons. If SMART_FHIR_UPSTREAM_URL has the same URL, uses
the gateway's credentials.

Exit code: 0 if everything was imported, 1 if a resource was refused or a file could not be read.

Example:
  npm run -s sallyport -- data import export/ extra.ndjson.gz`,
  options: { to: { type: 'string' } },
  positionals: { min: 1, max: 1000 },
  async run(args, io) {
    const settings = loadSettings(io)
    const { to } = args.values
    if (settings.fhir.upstreamUrl !== undefined && to === undefined)
      throw new CommandFailure(
        'Cannot import: SMART_FHIR_UPSTREAM_URL is set, so that server stores the data; specify it with --to',
      )
    const { findFiles } = await import('../../backends/sqlite/import/index.ts')
    const found = await findFiles(args.positionals, io.cwd)
    if (found.files.length === 0) throw new CommandFailure(nothingToRead(found))
    const started = performance.now()
    const progress = createProgress(io.stderr)
    const report =
      typeof to === 'string'
        ? await importTo(to, settings, found, progress)
        : await importInto(settings, found, progress)
    io.stdout.write(formatReport(report, found.skipped, performance.now() - started))
    return report.refused > 0 || report.unreadable.length > 0 ? 1 : 0
  },
}

async function importInto(settings: Settings, found: FoundFiles, progress: Progress): Promise<ImportReport> {
  const { openRepository } = await import('../../backends/sqlite/index.ts')
  const { importFiles } = await import('../../backends/sqlite/import/index.ts')
  const file = findDataFile(settings)
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
    throw isDatabaseFailure(error) ? new CommandFailure(`Cannot write ${file}: ${error.message}`) : error
  }
}

function isDatabaseFailure(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && error.code === 'ERR_SQLITE_ERROR'
}

function nothingToRead({ unreadable, skipped }: FoundFiles): string {
  const [first] = unreadable
  if (first !== undefined) return `Cannot read ${first.file}: ${first.reason}`
  return `Cannot import: no file is named .ndjson, .jsonl or .json (or these with .gz); ${skipped} skipped`
}
