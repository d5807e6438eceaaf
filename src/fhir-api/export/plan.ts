import { isFailure } from '../../core/index.ts'
import type { Context } from '../context.ts'
import type { ExportFile, ExportOrder, ExportPlan } from '../exports.ts'
import type { Failure } from '../response.ts'
import { EXPORT_STATUS_MS } from './limits.ts'
import { selectRows } from './rows.ts'

/** The files of one type: of its current resources, or of its deletions. */
interface Part {
  readonly type: string
  readonly kind: ExportFile['kind']
}

/** Deletions matter to a client that has exported before. */
function listParts({ types, since }: ExportOrder, knowsDeletions: boolean): readonly Part[] {
  const hasDeleted = since !== undefined && knowsDeletions
  return types.flatMap(type => [
    { type, kind: 'output' as const },
    ...(hasDeleted ? [{ type, kind: 'deleted' as const }] : []),
  ])
}

/**
 * Looks for further files, for a limited time. The client's requests for the status carry the work on: no process is in
 * charge of an export, and none has to remember it.
 */
export async function continuePlan(
  { session, exports, clock }: Context,
  order: ExportOrder,
  plan: ExportPlan,
): Promise<ExportPlan | Failure> {
  const { rows } = session
  const parts = listParts(order, rows.knowsDeletions)
  const files = [...plan.files]
  const end = clock() + EXPORT_STATUS_MS
  let { next } = plan
  while (next && clock() <= end) {
    const part = parts[next.part]
    if (!part) return { files }
    const range = await rows.divide(selectRows(order, part), next.after, exports?.fileResources ?? 0)
    if (isFailure(range)) return range
    if (range && range.rows !== 0) files.push({ ...part, ...range })
    next = range ? { part: next.part, after: range.to } : { part: next.part + 1, after: 0 }
  }
  return next ? { files, next } : { files }
}

/** How much of an export is prepared. */
export function describeProgress(order: ExportOrder, { next }: ExportPlan, knowsDeletions: boolean): string {
  const parts = listParts(order, knowsDeletions).length
  return `${Math.floor((100 * (next?.part ?? parts)) / Math.max(1, parts))}% prepared`
}
