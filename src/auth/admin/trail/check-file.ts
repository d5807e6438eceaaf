import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { setImmediate as yieldTurn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import {
  type AuditEventOptions,
  type EventIds,
  type KeptRecord,
  openEventIds,
  toAuditEvent,
} from '../../../audit/index.ts'
import { isFailure, isRecord, parseJson } from '../../../core/index.ts'
import type { Store } from '../../../store/index.ts'
import { parseCsv } from '../../../web/ui/index.ts'
import { LIMITS } from '../../base/limits.ts'
import {
  type Admin,
  type AdminFailure,
  type AdminOperation,
  failAdmin,
  recordAction,
} from '../base/action.ts'
import { COLUMNS, type ExportFormat, formatCells, INCOMPLETE } from './audit.ts'

export const CHECK_FILE: AdminOperation = {
  name: 'audit check-file',
  signIn: 'never asks',
  isForAuditors: true,
}

/** A record of a file that differs from the trail, or is not in it. */
interface Found {
  /** The number of the record; of an AuditEvent that is not of this trail, its id. */
  readonly id: string
  /** The columns or members that differ. */
  readonly differs?: readonly string[]
}

interface Group {
  readonly count: number
  /** The first few. */
  readonly first: readonly Found[]
}

/** How the records of an exported file compare with the trail of now. */
export interface FileCheck {
  readonly format: ExportFormat
  readonly records: number
  readonly unchanged: number
  readonly changed: Group
  /** Older than the oldest record that is kept: removed after the time that records are kept. */
  readonly expired: Group
  /** Never of this trail, or removed from it. */
  readonly missing: Group
}

/** A record of a file: its number, and the values that an export writes. Undefined number: not of this trail. */
interface Line {
  readonly number: number | undefined
  readonly id: string
  readonly values: Readonly<Record<string, unknown>>
}

/** The text of a file. */
type Chunks = AsyncIterable<string> | Iterable<string>

const AT_ONCE = 100
const SHOWN = 5

/**
 * Compares an exported file with the trail, and records that. Each record of the trail is exported again and compared, so
 * that every value counts, except the username: it is that of the day of the export.
 */
export async function checkFile(
  admin: Admin,
  chunks: Chunks,
  { fhirBaseUrl }: Pick<AuditEventOptions, 'fhirBaseUrl'>,
): Promise<FileCheck | AdminFailure> {
  const ids = await openEventIds(admin.store)
  const oldest = await findOldest(admin.store)
  const { format, text } = await findFormat(chunks)
  const groups = {
    unchanged: startTally(),
    changed: startTally(),
    expired: startTally(),
    missing: startTally(),
  }
  const compare = async (lines: readonly Line[]) => {
    const kept = await findKept(admin.store, lines)
    for (const line of lines) {
      const { id, number = Number.POSITIVE_INFINITY } = line
      const record = kept.get(number)
      const differs = record ? compareLine(line, record, format, { fhirBaseUrl, ids }) : []
      if (record) count(differs.length === 0 ? groups.unchanged : groups.changed, { id, differs })
      else count(number < oldest ? groups.expired : groups.missing, { id })
    }
    await yieldTurn()
  }
  let lines: Line[] = []
  for await (const line of format === 'csv' ? readRows(parseCsv(text)) : readEvents(text, ids)) {
    if (isFailure(line)) return line
    if (lines.push(line) < AT_ONCE) continue
    await compare(lines)
    lines = []
  }
  await compare(lines)
  const counts = Object.fromEntries(Object.entries(groups).map(([name, group]) => [name, group.count]))
  const records = Object.values(groups).reduce((sum, group) => sum + group.count, 0)
  if (records === 0) return NOT_AN_EXPORT
  const { unchanged, ...others } = groups
  const first = [...others.changed.first, ...others.missing.first].map(({ id }) => id)
  const refused = await recordAction(admin, { operation: CHECK_FILE, after: { records, ...counts, first } })
  return refused ?? { format, records, unchanged: unchanged.count, ...others }
}

let checking = 0

/** Checks few files at once: each is in memory. */
export async function checkFileInTurn(...check: Parameters<typeof checkFile>): ReturnType<typeof checkFile> {
  if (checking >= LIMITS.fileChecks) return failAdmin('file-checks-running')
  checking++
  try {
    return await checkFile(...check)
  } finally {
    checking--
  }
}

/** A group while it is counted. */
interface Tally {
  count: number
  readonly first: Found[]
}

const startTally = (): Tally => ({ count: 0, first: [] })

function count(tally: Tally, found: Found): void {
  tally.count++
  if (tally.first.length < SHOWN) tally.first.push(found)
}

const NOT_AN_EXPORT = failAdmin('file-not-an-export')

async function findOldest({ trail }: Store): Promise<number> {
  const db = await trail.read()
  const row = await db
    .selectFrom('audit_event')
    .select(({ fn }) => fn.min('id').as('id'))
    .executeTakeFirst()
  return Number(row?.id ?? 0)
}

async function findKept({ trail }: Store, lines: readonly Line[]): Promise<ReadonlyMap<number, KeptRecord>> {
  const numbers = lines.flatMap(({ number }) => number ?? [])
  if (numbers.length === 0) return new Map()
  const db = await trail.read()
  const rows = await db.selectFrom('audit_event').selectAll().where('id', 'in', numbers).execute()
  return new Map(rows.map(row => [row.id, row]))
}

/** Looks at the first character: each line of NDJSON is an object. */
async function findFormat(chunks: Chunks): Promise<{ format: ExportFormat; text: AsyncIterable<string> }> {
  const iterator = Readable.from(chunks, { objectMode: true }).iterator()
  const { value: first = '' } = await iterator.next()
  const text = async function* () {
    yield first.replace(/^\uFEFF/, '')
    yield* iterator
  }
  return { format: /^\uFEFF?\s*\{/.test(first) ? 'ndjson' : 'csv', text: text() }
}

async function* readRows(rows: AsyncIterable<readonly string[]>): AsyncGenerator<Line | AdminFailure> {
  let columns: readonly string[] | undefined
  let at = 0
  for await (const cells of rows) {
    at++
    if (columns && cells.length === 1 && cells[0]?.startsWith(INCOMPLETE)) continue
    if (columns) yield readRow(columns, cells, at)
    else if (cells.includes('id') && cells.every(cell => COLUMNS.includes(cell))) columns = cells
    else return yield NOT_AN_EXPORT
  }
}

function readRow(columns: readonly string[], cells: readonly string[], at: number): Line | AdminFailure {
  const values = Object.fromEntries(columns.map((column, index) => [column, cells[index]]))
  const { id = '' } = values
  if (cells.length !== columns.length || !/^\d{1,15}$/.test(id)) return failLine(at)
  return { number: Number(id), id, values }
}

async function* readEvents(text: AsyncIterable<string>, ids: EventIds): AsyncGenerator<Line | AdminFailure> {
  let at = 0
  for await (const line of createInterface({
    input: Readable.from(text),
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    at++
    if (line.trim() !== '' && !line.includes(`"text":"${INCOMPLETE}`)) yield readEvent(line, at, ids)
  }
}

function readEvent(line: string, at: number, ids: EventIds): Line | AdminFailure {
  const event = parseJson(line)
  if (!isRecord(event) || event.resourceType !== 'AuditEvent' || typeof event.id !== 'string')
    return failLine(at)
  const number = ids.parse(event.id)?.id
  return { number, id: number === undefined ? event.id.slice(0, 64) : String(number), values: event }
}

function failLine(at: number): AdminFailure {
  return failAdmin('file-line-invalid', { line: at })
}

/** The columns or members in which a record differs from the trail. */
function compareLine(
  { values }: Line,
  record: KeptRecord,
  format: ExportFormat,
  options: AuditEventOptions,
): readonly string[] {
  const exported = format === 'csv' ? formatCells(record) : dropUsernames(toAuditEvent(record, options))
  const sent = format === 'csv' ? values : dropUsernames(values)
  const names = new Set([...Object.keys(sent), ...(format === 'csv' ? [] : Object.keys(exported))])
  return [...names].filter(name => name !== 'username' && !isDeepStrictEqual(sent[name], exported[name]))
}

function dropUsernames(event: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const plain: Readonly<Record<string, unknown>> = JSON.parse(JSON.stringify(event))
  if (!Array.isArray(plain.agent)) return plain
  return { ...plain, agent: plain.agent.map(one => (isRecord(one) ? { ...one, altId: undefined } : one)) }
}
