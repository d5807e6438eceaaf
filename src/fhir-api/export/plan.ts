import { isFailure } from '../../core/index.ts'
import type { Context } from '../context.ts'
import type { ExportFile, ExportOrder, ExportPlan } from '../exports.ts'
import type { Failure } from '../response.ts'
import { divideBlocks, isOfBlocks } from './blocks.ts'
import { EXPORT_STATUS_MS } from './limits.ts'
import { selectRows } from './rows.ts'

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

type TakeStep = (context: Context, order: ExportOrder, at: Position) => Promise<Step | Failure>

interface Position {
  readonly part: Part
  readonly after: number
  readonly limit: number
  readonly plan: ExportPlan
}

async function divideType(
  { session }: Context,
  order: ExportOrder,
  { part: { kind, type }, after, limit }: Position,
): Promise<Step | Failure> {
  const part = { type, kind: kind === 'deleted' ? kind : 'output' } as const
  const range = await session.rows.divide(selectRows(order, part), after, limit)
  if (isFailure(range)) return range
  if (!range) return { files: [] }
  return { files: range.rows === 0 ? [] : [{ ...part, ...range }], after: range.to }
}

/** Types without resources would cost a search for each patient. */
async function probeType(
  { session }: Context,
  order: ExportOrder,
  { part: { type }, plan: { types = [] } }: Position,
): Promise<Step | Failure> {
  const range = await session.rows.divide(selectRows(order, { type, kind: 'output' }), 0, 1)
  return isFailure(range) ? range : { files: [], types: range ? [...types, type] : types }
}

const STEPS: Readonly<Record<Part['kind'], TakeStep>> = {
  output: divideType,
  deleted: divideType,
  probe: probeType,
  blocks: async ({ session }, order, { after, limit, plan: { types = [] } }) => {
    const found = await divideBlocks(session.rows, { order, types }, after, limit)
    return isFailure(found) ? found : { files: found, after: found.at(-1)?.to }
  },
}

/**
 * Looks for further files, for a limited time. The client's requests for the status carry the work on: no process is in
 * charge of an export, and none has to remember it.
 */
export async function continuePlan(
  context: Context,
  order: ExportOrder,
  before: ExportPlan,
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
    const step = await STEPS[part.kind](context, order, { part, after: next.after, limit, plan })
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

/** A range that follows the last one makes one file with it, if both fit. A file that the client knows stays as it is. */
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
  const isSame = file.kind === last.kind && file.type === last.type && file.from === last.to
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
