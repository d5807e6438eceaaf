import { isResourceType, type Params, parseQuery } from '../../../fhir/index.ts'
import { fullAccess } from '../../../smart/index.ts'
import { isProblem } from '../problem.ts'
import type { Repository } from '../repository/repository.ts'
import { runQuery } from '../search/run-query.ts'
import { bytesOf } from './bytes.ts'
import type { Candidate } from './candidate.ts'
import { failureText, isReadFailure } from './failure-text.ts'
import type { InputFile } from './find-files.ts'
import { createLoader, type Loader } from './loader.ts'
import { readDocument, type Survey, surveyDocument } from './read-document.ts'
import { readLines } from './read-lines.ts'
import { type ImportReport, type Place, Tally } from './report.ts'

/** How a file is laid out: a resource a line, or one JSON document. */
type Format =
  | { readonly kind: 'lines' }
  | { readonly kind: 'document' }
  | { readonly kind: 'empty' }
  | { readonly kind: 'foreign'; readonly reason: string }

/** Bytes that are looked at to tell. */
const peekBytes = 64 * 1024

/** Tells the layout by name and first bytes: `.json` files often hold a resource a line, too. */
export function formatOf(label: string, start: Buffer): Format {
  const first = start.find(byte => !isSpace(byte))
  if (first === undefined) return { kind: 'empty' }
  if (start.subarray(0, 2).toString('latin1') === 'PK')
    return { kind: 'foreign', reason: 'It is a zip archive: unpack it first' }
  if (start.includes(0)) return { kind: 'foreign', reason: 'It is not JSON text' }
  if (/\.(ndjson|jsonl)(\.gz)?$/i.test(label)) return { kind: 'lines' }
  if (first !== 0x7b && first !== 0x5b) return { kind: 'foreign', reason: 'It is not JSON text' }
  return { kind: isDocument(start) ? 'document' : 'lines' }
}

/** A document goes on after the first line end, or is a Bundle too long to be seen whole. */
function isDocument(start: Buffer): boolean {
  const text = start.toString('latin1')
  const end = text.search(/\S/) === -1 ? -1 : text.indexOf('\n', text.search(/\S/))
  const firstLine = end === -1 ? text : text.slice(0, end)
  if (isWholeJson(firstLine)) return text.trimStart().startsWith('[')
  return (
    end !== -1 || /"resourceType"\s*:\s*"Bundle"/.test(firstLine) || firstLine.trimStart().startsWith('[')
  )
}

function isWholeJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

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

/** What a conditional reference (`Practitioner?identifier=…`) means: the one resource that matches, if it is one. */
function findConditional(reference: string, repository: Repository): string | undefined {
  const { type, params } = partsOf(reference)
  if (!isResourceType(type)) return undefined
  const query = parseQuery([type], params, repository.baseUrl, false)
  if (isProblem(query)) return undefined
  const filter = (of: string) => fullAccess.filterFor(of, 's')
  const scene = { names: repository.names, baseUrl: repository.baseUrl, filter }
  const { hits, next } = runQuery(
    { database: repository.database, scene },
    { ...query, sort: [], count: 1 },
    undefined,
  )
  const [hit] = hits
  return hit === undefined || next !== undefined ? undefined : `${type}/${hit.id}`
}

function partsOf(reference: string): { readonly type: string; readonly params: Params } {
  const at = reference.indexOf('?')
  return { type: reference.slice(0, at), params: [...new URLSearchParams(reference.slice(at + 1))] }
}
