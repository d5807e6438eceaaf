import { findConditionMatch, type Repository } from '../backends/sqlite/index.ts'
import { isFailure } from '../core/index.ts'
import { Work } from '../fhir/index.ts'
import { parseConditionalReference } from '../fhir-api/index.ts'
import { fullAccess } from '../smart/index.ts'
import type { InputFile } from './find-files.ts'
import { detectFormat } from './find-files.ts'
import { type Candidate, createLoader, type ImportReport, type Loader, type Place, Tally } from './loader.ts'
import { describeReadFailure, isReadFailure } from './read-bytes.ts'
import { readDocument, type Survey, surveyDocument } from './read-document.ts'
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
  /** The longest line, entry or resource, in bytes. */
  readonly limit?: number
}

interface Import {
  readonly repository: Repository
  readonly tally: Tally
  readonly limit: number
  readonly loader: Loader
  readonly onRead: (bytes: number) => void
}

const MAX_ITEM_BYTES = 32 * 1024 * 1024

/**
 * Imports the files one after the other. A reference need not resolve. A Bundle with a conditional reference that has no
 * match yet waits until the other files are imported, so that the order of the files does not matter.
 */
export async function importFiles(options: ImportOptions): Promise<ImportReport> {
  const { files, repository, onProgress = () => {}, limit = MAX_ITEM_BYTES } = options
  const tally = new Tally()
  const total = files.reduce((sum, file) => sum + file.size, 0)
  let read = 0
  const loader = createLoader(repository, tally, () =>
    onProgress({ read, total, resources: tally.processed }),
  )
  const onRead = (bytes: number) => {
    read += bytes
  }
  const current: Import = { repository, tally, limit, loader, onRead }
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
    current.tally.unreadable.push({ file: file.label, reason: describeReadFailure(error) })
    return 'done'
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
      current.tally.unreadable.push({ file: file.label, reason: format.reason })
      return 'done'
    case 'lines':
      await importLines(file, current)
      return 'done'
    case 'document':
      return importDocument(file, current, isLast)
  }
}

async function importLines(file: InputFile, current: Import): Promise<void> {
  const { repository, limit, loader, onRead } = current
  const resolve = (reference: string) => resolveConditional(reference, repository)
  for await (const candidate of untilBroken(file, readLines(file, limit, resolve, onRead)))
    loader.add(candidate)
}

async function importDocument(file: InputFile, current: Import, isLast: boolean): Promise<'done' | 'waits'> {
  const survey = await surveyDocument(file, current.limit)
  const unresolved = resolveAll(survey, current.repository)
  if (unresolved > 0 && !isLast) return 'waits'
  current.tally.unresolved += unresolved
  const candidates = readDocument(file, survey, survey.names, current.limit, current.onRead)
  for await (const candidate of untilBroken(file, candidates)) current.loader.add(candidate)
  return 'done'
}

/** Ends a file that cannot be read any further with the last position that was read. */
async function* untilBroken(
  file: InputFile,
  candidates: AsyncIterable<Candidate>,
): AsyncGenerator<Candidate> {
  let place: Place = { file: file.label, line: 0 }
  try {
    for await (const candidate of candidates) {
      place = candidate.place
      yield candidate
    }
  } catch (error) {
    if (!isReadFailure(error)) throw error
    yield { kind: 'broken', place, reason: describeReadFailure(error) }
  }
}

/** Adds the targets of the conditional references to the names. Returns how many have none. */
function resolveAll({ names, conditionals }: Survey, repository: Repository): number {
  let unresolved = 0
  for (const reference of conditionals) {
    const target = resolveConditional(reference, repository)
    if (target === undefined) unresolved++
    else names.set(reference, target)
  }
  return unresolved
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
