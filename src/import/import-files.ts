import { findConditionMatch, type Repository } from '../backends/sqlite/index.ts'
import { isFailure, isRecord, readWhole } from '../core/index.ts'
import { Work } from '../fhir/index.ts'
import { parseConditionalReference } from '../fhir-api/index.ts'
import { fullAccess } from '../smart/index.ts'
import type { InputFile } from './find-files.ts'
import { detectFormat } from './find-files.ts'
import { formatMib, MAX_DOCUMENT_BYTES, MAX_LINE_BYTES } from './limits.ts'
import { createLoader, type ImportReport, type Loader, Tally } from './loader.ts'
import { describeReadFailure, isReadFailure, readBytes } from './read-bytes.ts'
import { type FindConditional, parseBytes, readDocument } from './read-document.ts'
import { readLines } from './read-lines.ts'

export interface ImportProgress {
  /** Bytes as stored. */
  readonly read: number
  readonly total: number
  readonly resources: number
}

interface ImportOptions {
  readonly files: readonly InputFile[]
  readonly repository: Repository
  readonly onProgress?: (progress: ImportProgress) => void
  /** The longest line, in bytes. */
  readonly lineLimit?: number
  /** The longest document (a Bundle, an array or a resource on several lines), in bytes, unpacked. */
  readonly documentLimit?: number
}

interface Import {
  readonly tally: Tally
  readonly lineLimit: number
  readonly documentLimit: number
  readonly loader: Loader
  readonly find: FindConditional
  readonly onRead: (bytes: number) => void
}

/**
 * Imports the files one after the other. A reference need not resolve. A Bundle with a conditional reference that has no
 * match yet waits until the other files are imported, so that the order of the files does not matter.
 */
export async function importFiles(options: ImportOptions): Promise<ImportReport> {
  const { files, repository, onProgress = () => {} } = options
  const { lineLimit = MAX_LINE_BYTES, documentLimit = MAX_DOCUMENT_BYTES } = options
  const tally = new Tally()
  const total = files.reduce((sum, file) => sum + file.size, 0)
  let read = 0
  const loader = createLoader(repository, tally, () =>
    onProgress({ read, total, resources: tally.processed }),
  )
  const onRead = (bytes: number) => {
    read += bytes
  }
  const find = (reference: string) => resolveConditional(reference, repository)
  const current: Import = { tally, lineLimit, documentLimit, loader, find, onRead }
  const waiting: InputFile[] = []
  for (const file of files) if ((await importFile(file, current, false)) === 'waits') waiting.push(file)
  for (const file of waiting) await importFile(file, current, true)
  return tally.report(files.length)
}

async function importFile(file: InputFile, current: Import, isLast: boolean): Promise<'done' | 'waits'> {
  try {
    return await readFile(file, current, isLast)
  } catch (error) {
    if (!isReadFailure(error)) throw error
    return refuseFile(file, current.tally, describeReadFailure(error))
  } finally {
    current.loader.flush()
  }
}

async function readFile(file: InputFile, current: Import, isLast: boolean): Promise<'done' | 'waits'> {
  const format = await detectFormat(file)
  switch (format.kind) {
    case 'empty':
      return 'done'
    case 'unknown':
      return refuseFile(file, current.tally, format.reason)
    case 'lines':
      await importLines(file, current)
      return 'done'
    case 'document':
      return importDocument(file, current, isLast)
  }
}

function refuseFile({ label }: InputFile, tally: Tally, reason: string): 'done' {
  tally.unreadable.push({ file: label, reason })
  return 'done'
}

async function importLines(file: InputFile, current: Import): Promise<void> {
  const { tally, lineLimit, loader, find, onRead } = current
  let line = 0
  try {
    for await (const candidate of readLines(file, lineLimit, find, onRead)) {
      line = candidate.place.number
      loader.add(candidate)
    }
  } catch (error) {
    if (!isReadFailure(error)) throw error
    tally.unreadable.push({ file: file.label, line, reason: describeReadFailure(error) })
  }
}

async function importDocument(file: InputFile, current: Import, isLast: boolean): Promise<'done' | 'waits'> {
  const { tally, documentLimit, loader, find, onRead } = current
  const bytes = await readWhole(readBytes(file.path), documentLimit)
  if (bytes === undefined) return refuseFile(file, tally, describeTooLarge(documentLimit))
  const parsed = parseBytes(bytes)
  if (isFailure(parsed)) return refuseFile(file, tally, 'It is not JSON text, or it is cut off')
  if (isManifest(parsed.value)) return 'done'
  const { candidates, unresolved } = readDocument(parsed.value, file.label, bytes.length, find)
  if (unresolved > 0 && !isLast) return 'waits'
  tally.unresolved += unresolved
  onRead(file.size)
  for (const candidate of candidates) loader.add(candidate)
  return 'done'
}

/** The manifest of an export lies beside its files, and is no resource (Bulk Data Access 3.0.0). */
function isManifest(value: unknown): boolean {
  return isRecord(value) && value.resourceType === undefined && Array.isArray(value.output)
}

function describeTooLarge(limit: number): string {
  return `It is a JSON document of more than ${formatMib(limit)}. Split the Bundle, or write one resource per line (NDJSON)`
}

/** `Type/id` of the one resource that a conditional reference matches. */
function resolveConditional(reference: string, repository: Repository): string | undefined {
  const condition = parseConditionalReference(reference)
  const found =
    condition &&
    findConditionMatch(
      repository,
      { access: fullAccess, work: new Work(Number.POSITIVE_INFINITY) },
      condition.type,
      condition.params,
      Number.POSITIVE_INFINITY,
    )
  return !found || isFailure(found) || !found.match ? undefined : `${found.match.type}/${found.match.id}`
}
