import { isFailure } from '../../core/index.ts'
import type { ExportRange } from '../backend.ts'
import type { Context } from '../context.ts'
import type { ExportFile, ExportJob, ExportOrder, ExportPlan } from '../exports.ts'
import type { FhirRequest, Operation } from '../request.ts'
import type { Failure } from '../response.ts'
import { divideBlocks, isOfBlocks } from './blocks.ts'
import { EXPORT_ROWS_CHECKED, EXPORT_STATUS_MS } from './limits.ts'
import { createRowCheck, isWhole, selectRows } from './rows.ts'

/** A part of the work: the files of a type or of its deletions, whether a type is empty, or files organized by patient. */
interface Part {
  readonly kind: ExportFile['kind'] | 'probe' | 'blocks'
  readonly type: string
}

function listParts({ types, hasDeletions, isByPatient }: ExportOrder): readonly Part[] {
  const deleted = types.map(type => ({ type, kind: 'deleted' as const }))
  const organized = [
    ...listBlockTypes(types).map(type => ({ type, kind: 'probe' as const })),
    { type: 'Patient', kind: 'blocks' as const },
  ]
  const output = isByPatient ? organized : types.map(type => ({ type, kind: 'output' as const }))
  return hasDeletions ? [...output, ...deleted] : output
}

/** A patient comes before the resources that refer to it. */
function listBlockTypes(types: readonly string[]): readonly string[] {
  const others = types.filter(it => isOfBlocks(it) && it !== 'Patient')
  return types.includes('Patient') ? ['Patient', ...others] : others
}

/** What a step has found, and the position after which the part goes on; undefined at its end. */
interface Step {
  readonly files: readonly ExportFile[]
  readonly types?: readonly string[]
  readonly after?: number | undefined
}

type TakeStep = (search: FileSearch, at: Position) => Promise<Step | Failure>

interface FileSearch {
  readonly context: Context
  readonly request: FhirRequest<Operation>
  readonly order: ExportOrder
}

interface Position {
  readonly part: Part
  readonly after: number
  readonly limit: number
  readonly plan: ExportPlan
}

/** A limited caller does not learn from its files how many rows are outside of its access, or that there are any. */
async function divideType(
  search: FileSearch,
  { part: { kind, type }, after, limit }: Position,
): Promise<Step | Failure> {
  const { context, request, order } = search
  const { rows } = context.session
  const part = { type, kind: kind === 'deleted' ? kind : 'output' } as const
  const isLimited = !rows.isWithinAccess && !isWhole(request.access, type)
  const most = isLimited ? Math.min(limit, EXPORT_ROWS_CHECKED) : limit
  const range = await rows.divide(selectRows(order, part), after, most)
  if (isFailure(range)) return range
  if (!range) return { files: [] }
  const shown = isLimited ? await countShown(search, part, range) : range.rows
  if (isFailure(shown)) return shown
  const file = { ...part, ...range, rows: shown, ...(isLimited && { isLimited }) }
  return { files: shown === 0 ? [] : [file], after: range.to }
}

async function countShown(
  { context, request, order }: FileSearch,
  part: Pick<ExportFile, 'kind' | 'type'>,
  range: ExportRange,
): Promise<number | Failure> {
  const check = createRowCheck(context, request, order, part)
  let shown = 0
  for await (const some of context.session.rows.read(selectRows(order, part), range)) {
    const kept = isFailure(some) ? some : await check(some)
    if (isFailure(kept)) return kept
    shown += kept.length
  }
  return shown
}

/** Types without resources would cost a search for each patient. */
async function probeType(
  { context: { session }, order }: FileSearch,
  { part: { type }, plan: { types = [] } }: Position,
): Promise<Step | Failure> {
  const range = await session.rows.divide(selectRows(order, { type, kind: 'output' }), 0, 1)
  return isFailure(range) ? range : { files: [], types: range ? [...types, type] : types }
}

const STEPS: Readonly<Record<Part['kind'], TakeStep>> = {
  output: divideType,
  deleted: divideType,
  probe: probeType,
  blocks: async ({ context, request, order }, { after, limit, plan: { types = [] } }) => {
    const part = { type: 'Patient', kind: 'output' } as const
    const check = createRowCheck(context, request, { ...order, filters: [] }, part)
    const found = await divideBlocks(context.session.rows, { order, types, check }, after, limit)
    return isFailure(found) ? found : { files: found.filter(it => it.rows !== 0), after: found.at(-1)?.to }
  },
}

/**
 * Looks for further files, for a limited time. The client's requests for the status carry the work on: no process is in
 * charge of an export, and none has to remember it.
 */
export async function continuePlan(
  context: Context,
  request: FhirRequest<Operation>,
  { order, plan: before }: Pick<ExportJob, 'order' | 'plan'>,
): Promise<ExportPlan | Failure> {
  const { exports, clock } = context
  const parts = listParts(order)
  const limit = exports?.fileResources ?? 0
  const end = clock() + EXPORT_STATUS_MS
  let plan = before
  while (plan.next && clock() <= end) {
    const { next, ...rest } = plan
    const part = parts[next.part]
    if (!part) {
      plan = rest
      break
    }
    const step = await STEPS[part.kind]({ context, request, order }, { part, after: next.after, limit, plan })
    if (isFailure(step)) return step
    const { files, types, after } = step
    plan = {
      ...plan,
      files: addFiles(plan, files, limit),
      ...(types && { types }),
      next: after === undefined ? { part: next.part + 1, after: 0 } : { part: next.part, after },
    }
  }
  return order.isPartial ? endManifest(plan) : plan
}

/** A range that follows the last one, with nothing to export in between, makes one file with it, if both fit. A file that the client knows stays as it is. */
function addFiles({ files, manifests }: ExportPlan, added: readonly ExportFile[], limit: number) {
  const all = [...files]
  for (const file of added) {
    const last = all.at(-1)
    const isOpen = last && all.length > (manifests?.at(-1) ?? 0)
    if (isOpen && follows(file, last) && sumRows(last, file) <= limit)
      all[all.length - 1] = { ...last, to: file.to, rows: sumRows(last, file) }
    else all.push(file)
  }
  return all
}

function follows(file: ExportFile, last: ExportFile): boolean {
  const isSame = file.kind === last.kind && file.type === last.type && file.isLimited === last.isLimited
  return isSame && !file.section && !last.section
}

function sumRows(one: ExportFile, other: ExportFile): number {
  return (one.rows ?? Number.POSITIVE_INFINITY) + (other.rows ?? Number.POSITIVE_INFINITY)
}

/** The client gets the files that do not change any more. */
function endManifest(plan: ExportPlan): ExportPlan {
  const { files, manifests = [], next } = plan
  const end = next ? files.length - 1 : files.length
  const isNew = end > (manifests.at(-1) ?? 0) && !files[end - 1]?.section?.continues
  return isNew ? { ...plan, manifests: [...manifests, end] } : plan
}

/** How much of an export is prepared. */
export function describeProgress(order: ExportOrder, { next }: ExportPlan): string {
  const parts = listParts(order).length
  return `${Math.floor((100 * (next?.part ?? parts)) / Math.max(1, parts))}% prepared`
}
