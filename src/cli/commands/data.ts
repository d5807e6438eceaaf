import { join } from 'node:path'
import { findFiles, importFiles } from '../../fhir-server/import/index.ts'
import { openRepository } from '../../fhir-server/index.ts'
import { type Command, CommandFailure } from '../command.ts'
import { createProgress } from '../import/progress.ts'
import { reportText } from '../import/report-text.ts'
import { settingsOf } from '../with-store.ts'

/** `sallyport data import`. */
export const dataImport: Command = {
  name: 'data import',
  summary: 'Import FHIR resources into the embedded FHIR server',
  usage: `
Usage: npm run -s sallyport -- data import <file or folder>...

Reads NDJSON, Bundles (collection, transaction, batch, searchset, document) and single resources, each also as gzip,
and folders of these with what is below them. It works while the servers run, while they are stopped and before the
first start. Resources keep their ids; what is there already with the same content is left unchanged, so an import can
be repeated. Ends with a report; what was refused is listed by reason, with file and line of the first ones.

Exit code: 0 when everything was imported, 1 when something was refused or could not be read.

Example:
  npm run -s sallyport -- data import export/ extra.ndjson.gz`,
  options: {},
  positionals: { min: 1, max: 1000 },
  async run(args, io) {
    const settings = settingsOf(io)
    if (settings.fhir.upstreamUrl !== undefined)
      throw new CommandFailure(
        'Cannot import: SMART_FHIR_UPSTREAM_URL is set, so the data are kept by that server',
      )
    const found = await findFiles(args.positionals, io.cwd)
    const progress = createProgress(io.stderr)
    const file = join(settings.dataDir, 'fhir.db')
    const repository = openRepository({ file, baseUrl: settings.fhirBaseUrl })
    try {
      const started = performance.now()
      const report = await importFiles({ files: found.files, repository, onProgress: progress.show })
      progress.end()
      const whole = { ...report, unreadable: [...found.unreadable, ...report.unreadable] }
      io.stdout.write(reportText(whole, found.passedOver, performance.now() - started))
      return whole.refused > 0 || whole.unreadable.length > 0 ? 1 : 0
    } finally {
      repository.close()
    }
  },
}
