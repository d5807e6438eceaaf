import type { Context } from '../context.ts'
import type { ExportFile, ExportJob } from '../exports.ts'
import type { FhirRequest, Operation } from '../request.ts'
import { formatFileUrl, formatStatusUrl } from './file-url.ts'
import { isPlain } from './rows.ts'

/** The manifest of Bulk Data Access 3.0.0, or a page of it if the client takes partial ones. Another version has another shape, of the same job. */
export function buildManifest(
  { baseUrl, exports, session }: Pick<Context, 'baseUrl' | 'exports' | 'session'>,
  request: FhirRequest<Operation>,
  job: ExportJob,
  page = 1,
): object {
  const { order, plan } = job
  const { files, manifests = [] } = plan
  const isByPatient = order.isByPatient === true
  const formatUrl = (file: ExportFile | undefined) =>
    file && formatFileUrl(baseUrl, exports, { job: job.id, file })
  const isCounted = (file: ExportFile) =>
    session.rows.isStable &&
    file.rows !== undefined &&
    !file.isLimited &&
    isPlain(request.access, order, file)
  const describe = (file: ExportFile, at: number) => ({
    ...(file.kind === 'deleted' && { type: 'Bundle' }),
    ...(file.kind === 'output' && !isByPatient && { type: file.type }),
    url: formatUrl(file),
    ...(file.section?.continues && { continuesInFile: formatUrl(files[at + 1]) }),
    ...(isCounted(file) && { count: file.rows }),
  })
  const from = manifests[page - 2] ?? 0
  const to = order.isPartial ? (manifests[page - 1] ?? 0) : files.length
  const list = (kind: ExportFile['kind']) =>
    files.flatMap((file, at) => (file.kind === kind && at >= from && at < to ? [describe(file, at)] : []))
  return {
    transactionTime: new Date(order.moment.time).toISOString(),
    request: order.url,
    requiresAccessToken: true,
    ...(isByPatient && { outputOrganizedBy: 'Patient' }),
    output: list('output'),
    deleted: list('deleted'),
    error:
      order.notes.length === 0
        ? []
        : [
            {
              type: 'OperationOutcome',
              url: formatFileUrl(baseUrl, exports, { job: job.id }),
              count: order.notes.length,
            },
          ],
    ...(manifests.length > page && {
      link: [{ relation: 'next', url: formatStatusUrl(baseUrl, job.id, page + 1) }],
    }),
  }
}
