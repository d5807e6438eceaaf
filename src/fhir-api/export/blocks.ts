import { isFailure } from '../../core/index.ts'
import { hasCompartment } from '../../smart/index.ts'
import type { ExportRange, ExportRow, ExportSource } from '../backend.ts'
import type { ExportFile, ExportOrder, ExportSection } from '../exports.ts'
import type { Failure } from '../response.ts'
import { EXPORT_PATIENTS_COUNTED } from './limits.ts'
import { type CheckRows, selectRows } from './rows.ts'

/** Files organized by patient (Bulk Data Access 3.0.0, Bulk Data Output File Organization): a header, and the patient's resources. */
export interface Blocks {
  readonly order: ExportOrder
  /** In the order of the lines of a patient. */
  readonly types: readonly string[]
  /** Leaves the patients whom the caller may see. */
  readonly check: CheckRows
}

/** A Group lists other patients, and a Provenance belongs to those of its targets. */
export function isOfBlocks(type: string): boolean {
  return hasCompartment(type) && type !== 'Group' && type !== 'Provenance'
}

/** All patients of the export: those that did not change may have new resources. */
function selectPatients({ moment, patients }: ExportOrder) {
  return { type: 'Patient', moment, isDeleted: false, filters: [], ...(patients && { patients }) }
}

function selectBlock({ order }: Pick<Blocks, 'order'>, type: string, of: readonly string[]) {
  return { ...selectRows(order, { type, kind: 'output' }), of }
}

/** The files of the next patients, or those of one patient with more resources than a file may have; none after the last. */
export async function divideBlocks(
  rows: ExportSource,
  blocks: Blocks,
  after: number,
  limit: number,
  most = EXPORT_PATIENTS_COUNTED,
): Promise<readonly ExportFile[] | Failure> {
  const range = await rows.divide(selectPatients(blocks.order), after, most)
  if (isFailure(range)) return range
  if (!range) return []
  const ids = await listIds(rows, blocks, range)
  if (isFailure(ids)) return ids
  const lines = await countLines(rows, blocks, ids)
  if (isFailure(lines)) return lines
  const file = { kind: 'output', type: 'Patient', ...range, rows: lines } as const
  const [id] = ids
  if (lines <= limit || id === undefined) return [file]
  if (ids.length === 1) return divideBlock(rows, blocks, { id, file }, limit)
  // Patients who cannot be told apart by their position stay together.
  return most > 1 ? divideBlocks(rows, blocks, after, limit, 1) : [file]
}

async function listIds(
  rows: ExportSource,
  { order, check }: Blocks,
  range: Partial<ExportRange>,
): Promise<readonly string[] | Failure> {
  const ids: string[] = []
  for await (const some of rows.read(selectPatients(order), range)) {
    const shown = isFailure(some) ? some : await check(some)
    if (isFailure(shown)) return shown
    ids.push(...shown.map(it => it.id))
  }
  return ids
}

/** With the headers. */
async function countLines(
  rows: ExportSource,
  blocks: Blocks,
  ids: readonly string[],
): Promise<number | Failure> {
  let lines = ids.length
  for (const type of ids.length === 0 ? [] : blocks.types) {
    const count = await rows.count(selectBlock(blocks, type, ids))
    if (isFailure(count)) return count
    lines += count
  }
  return lines
}

/** Each file repeats the header. */
async function divideBlock(
  rows: ExportSource,
  blocks: Blocks,
  { id, file }: { readonly id: string; readonly file: ExportFile },
  limit: number,
): Promise<readonly ExportFile[] | Failure> {
  const most = Math.max(1, limit - 1)
  const ends: { readonly last: number; readonly to: number }[] = []
  let lines = 0
  for (const [last, type] of blocks.types.entries())
    for (let after = 0; ; ) {
      if (lines >= most) {
        ends.push({ last, to: after })
        lines = 0
      }
      const range = await rows.divide(selectBlock(blocks, type, [id]), after, most - lines)
      if (isFailure(range)) return range
      if (!range) break
      lines += range.rows ?? most
      after = range.to
    }
  // The last file would be empty.
  if (lines === 0) ends.pop()
  const starts = [{ last: 0, to: 0 }, ...ends]
  return starts.map((start, at) => ({
    ...file,
    section: {
      first: start.last,
      after: start.to,
      ...(ends[at] ? { ...ends[at], continues: true as const } : { last: blocks.types.length - 1 }),
    },
  }))
}

export interface BlockRows {
  readonly patient: string
  readonly type: string
  readonly rows: readonly ExportRow[]
}

/** The resources of the patients of a file, patient by patient. */
export async function* readBlocks(
  rows: ExportSource,
  blocks: Omit<Blocks, 'check'>,
  file: ExportFile,
): AsyncGenerator<BlockRows | Failure> {
  const { section = { first: 0, after: 0, last: blocks.types.length - 1 } } = file
  for await (const patients of rows.read(selectPatients(blocks.order), file)) {
    if (isFailure(patients)) yield patients
    else for (const { id } of patients) yield* readBlock(rows, blocks, section, id)
  }
}

async function* readBlock(
  rows: ExportSource,
  blocks: Omit<Blocks, 'check'>,
  { first, after, last, to }: ExportSection,
  patient: string,
): AsyncGenerator<BlockRows | Failure> {
  for (const [at, type] of blocks.types.entries()) {
    if (at < first || at > last) continue
    const range = { ...(at === first && { from: after }), ...(at === last && to !== undefined && { to }) }
    for await (const some of rows.read(selectBlock(blocks, type, [patient]), range)) {
      if (isFailure(some)) yield some
      // A Patient that links to another one has lines of its own.
      else yield { patient, type, rows: type === 'Patient' ? some.filter(it => it.id === patient) : some }
    }
  }
}
