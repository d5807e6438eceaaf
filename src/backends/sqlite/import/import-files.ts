import type { Repository } from '../repository/repository.ts'
import { bytesOf } from './bytes.ts'
import type { Candidate } from './candidate.ts'
import { failureText, isReadFailure } from './failure-text.ts'
import { findConditional } from './find-conditional.ts'
import type { InputFile } from './find-files.ts'
import { formatOf, peekBytes } from './format.ts'
import { createLoader, type Loader } from './loader.ts'
import { readDocument, type Survey, surveyDocument } from './read-document.ts'
import { readLines } from './read-lines.ts'
import { type ImportReport, type Place, Tally } from './report.ts'

export interface ImportProgress {
  /** Bytes as stored. */
  readonly read: number
  readonly total: number
  readonly resources: number
}

export interface ImportOptions {
  readonly files: readonly InputFile[]
  readonly repository: Repository
  readonly onProgress?: (progress: ImportProgress) => void
  /** The longest line, entry or resource, in bytes. */
  readonly limit?: number
}

interface Run {
  readonly repository: Repository
  readonly tally: Tally
  readonly limit: number
  readonly loader: Loader
  readonly onRead: (bytes: number) => void
}

const longest = 32 * 1024 * 1024

/**
 * Imports the files one after the other. References need not resolve; but Bundles whose conditional references match
 * nothing yet wait until the other files are in, so that the order of the files does not matter.
 */
export async function importFiles(options: ImportOptions): Promise<ImportReport> {
  const { files, repository, onProgress = () => {}, limit = longest } = options
  const tally = new Tally()
  const total = files.reduce((sum, file) => sum + file.size, 0)
  let read = 0
  const loader = createLoader(repository, tally, () => onProgress({ read, total, resources: tally.seen }))
  const onRead = (bytes: number) => {
    read += bytes
  }
  const run: Run = { repository, tally, limit, loader, onRead }
  const waiting: InputFile[] = []
  for (const file of files) if ((await importFile(file, run, false)) === 'waits') waiting.push(file)
  for (const file of waiting) await importFile(file, run, true)
  return tally.report(files.length)
}

async function importFile(file: InputFile, run: Run, last: boolean): Promise<'done' | 'waits'> {
  try {
    return await readFile(file, run, last)
  } catch (error) {
    if (!isReadFailure(error)) throw error
    run.tally.unreadable.push({ file: file.label, reason: failureText(error) })
    return 'done'
  } finally {
    run.loader.flush()
  }
}

async function readFile(file: InputFile, run: Run, last: boolean): Promise<'done' | 'waits'> {
  const format = formatOf(file.label, await peek(file))
  switch (format.kind) {
    case 'empty':
      return 'done'
    case 'foreign':
      run.tally.unreadable.push({ file: file.label, reason: format.reason })
      return 'done'
    case 'lines':
      await importLines(file, run)
      return 'done'
    case 'document':
      return importDocument(file, run, last)
  }
}

/** The first bytes; of a file that breaks off early, those that can be read. */
async function peek(file: InputFile): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of bytesOf(file.path)) {
      chunks.push(chunk)
      length += chunk.length
      if (length >= peekBytes) break
    }
  } catch (error) {
    if (length === 0 || !isReadFailure(error)) throw error
  }
  return Buffer.concat(chunks).subarray(0, peekBytes)
}

async function importLines(file: InputFile, run: Run): Promise<void> {
  const { repository, limit, loader, onRead } = run
  const find = (reference: string) => findConditional(reference, repository)
  for await (const candidate of untilBroken(file, readLines(file, limit, find, onRead))) loader.add(candidate)
}

async function importDocument(file: InputFile, run: Run, last: boolean): Promise<'done' | 'waits'> {
  const survey = await surveyDocument(file, run.limit)
  const missing = lookUp(survey, run.repository)
  if (missing > 0 && !last) return 'waits'
  run.tally.unresolved += missing
  const candidates = readDocument(file, survey, survey.names, run.limit, run.onRead)
  for await (const candidate of untilBroken(file, candidates)) run.loader.add(candidate)
  return 'done'
}

/** A file that cannot be read on ends here, with the last place that was read. */
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
    yield { kind: 'broken', place, reason: failureText(error) }
  }
}

/** Adds what the conditional references mean to the names; how many mean nothing. */
function lookUp({ names, conditionals }: Survey, repository: Repository): number {
  let missing = 0
  for (const reference of conditionals) {
    const found = findConditional(reference, repository)
    if (found === undefined) missing++
    else names.set(reference, found)
  }
  return missing
}
