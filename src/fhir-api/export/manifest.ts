import type { Context } from '../context.ts'
import type { ExportFile, ExportJob } from '../exports.ts'
import type { FhirRequest, Operation } from '../request.ts'
import { formatFileUrl } from './file-url.ts'
import { isPlain } from './rows.ts'

/** The manifest of Bulk Data Access 3.0.0. Another version has another shape, of the same job. */
export function buildManifest(
  { baseUrl, exports }: Pick<Context, 'baseUrl' | 'exports'>,
  request: FhirRequest<Operation>,
  job: ExportJob,
): object {
  const { order, plan } = job
  const list = (kind: ExportFile['kind']) =>
    plan.files
      .filter(file => file.kind === kind)
      .map(file => ({
        type: kind === 'deleted' ? 'Bundle' : file.type,
        url: formatFileUrl(baseUrl, exports, { job: job.id, file }),
        ...(isPlain(request.access, order, file) && file.rows !== undefined && { count: file.rows }),
      }))
  return {
    transactionTime: new Date(order.moment.time).toISOString(),
    request: order.url,
    requiresAccessToken: true,
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
  }
}
