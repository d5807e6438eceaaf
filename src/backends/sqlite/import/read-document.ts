import { isRecord } from '../../../fhir/index.ts'
import { parseConditionalReference } from '../../../fhir-api/index.ts'
import {
  findBundleFault,
  findReferences,
  parseJson,
  type Replacements,
  readEntry,
  replaceReferences,
  withId,
} from './bundle-entry.ts'
import type { InputFile } from './find-files.ts'
import { isReadFailure, readBytes } from './read-bytes.ts'
import type { Candidate } from './report.ts'
import { splitDocument } from './split-document.ts'

/** The result of reading a document once, before any of it is imported. */
export interface Survey {
  readonly kind: 'bundle' | 'array' | 'resource'
  /** `Type/id` by `fullUrl` and, once they are found, by conditional reference. */
  readonly names: Map<string, string>
  /** Conditional references, to be resolved. */
  readonly conditionals: Set<string>
  /** Why none of the document is imported, if so. */
  readonly fault?: string
}

/**
 * Reads a document to its end to collect the `fullUrl`s of its entries: an entry may refer to a later one. Memory holds
 * these names, not the entries.
 */
export async function surveyDocument(file: InputFile, limit: number): Promise<Survey> {
  const names = new Map<string, string>()
  const conditionals = new Set<string>()
  try {
    for await (const part of splitDocument(readBytes(file.path), limit)) {
      if (part.kind === 'item') surveyEntry(part.bytes, names, conditionals)
      if (part.kind === 'frame') return { ...readFrame(part.bytes), names, conditionals }
    }
  } catch (error) {
    if (!isReadFailure(error)) throw error
  }
  // The document ends early: the complete entries are imported, and the second reading reports where it ends.
  return { kind: 'bundle', names, conditionals }
}

function readFrame(frame: Buffer): Pick<Survey, 'kind' | 'fault'> {
  const parsed = parseJson(frame)
  if ('fault' in parsed) return { kind: 'bundle', fault: parsed.fault }
  if (Array.isArray(parsed.value)) return { kind: 'array' }
  if (!isRecord(parsed.value) || parsed.value.resourceType !== 'Bundle') return { kind: 'resource' }
  const fault = findBundleFault(parsed.value.type)
  return fault === undefined ? { kind: 'bundle' } : { kind: 'bundle', fault }
}

function surveyEntry(bytes: Buffer, names: Map<string, string>, conditionals: Set<string>): void {
  const parsed = parseJson(bytes)
  if ('fault' in parsed) return
  const entry = readEntry(parsed.value)
  if (entry.kind !== 'resource') return
  const { resource, fullUrl } = entry
  if (fullUrl !== undefined) names.set(fullUrl, `${resource.resourceType}/${resource.id}`)
  for (const reference of findReferences(resource))
    if (parseConditionalReference(reference)) conditionals.add(reference)
}

/** The resources of a document, each with the line on which it begins. */
export async function* readDocument(
  file: InputFile,
  survey: Survey,
  by: Replacements,
  limit: number,
  onRead: (bytes: number) => void,
): AsyncGenerator<Candidate> {
  if (survey.kind === 'resource') return yield* readWhole(file, limit, onRead)
  const place = (line: number) => ({ file: file.label, line })
  for await (const part of splitDocument(readBytes(file.path, onRead), limit)) {
    if (part.kind === 'broken') yield { kind: 'broken', place: place(part.line), reason: part.reason }
    else if (part.kind === 'too-long')
      yield { kind: 'fault', place: place(part.line), fault: describeTooLong(limit) }
    else if (part.kind === 'item' && survey.fault === undefined)
      yield* readItem(part.bytes, survey.kind, by, place(part.line))
  }
  if (survey.fault !== undefined) yield { kind: 'fault', place: place(1), fault: survey.fault }
}

function* readItem(
  bytes: Buffer,
  kind: Survey['kind'],
  by: Replacements,
  place: Candidate['place'],
): Generator<Candidate> {
  const parsed = parseJson(bytes)
  if ('fault' in parsed) return yield { kind: 'fault', place, fault: parsed.fault }
  if (kind === 'array')
    return yield { kind: 'resource', place, resource: withId(parsed.value), bytes: bytes.length }
  const entry = readEntry(parsed.value)
  if (entry.kind === 'fault') yield { kind: 'fault', place, fault: entry.fault }
  if (entry.kind === 'resource')
    yield { kind: 'resource', place, resource: replaceReferences(entry.resource, by), bytes: bytes.length }
}

/** A file with one resource. (A List has an `entry` too, so that only the whole document decides.) */
async function* readWhole(
  file: InputFile,
  limit: number,
  onRead: (bytes: number) => void,
): AsyncGenerator<Candidate> {
  const place = { file: file.label, line: 1 }
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of readBytes(file.path, onRead)) {
    length += chunk.length
    if (length <= limit) chunks.push(chunk)
  }
  if (length > limit) return yield { kind: 'fault', place, fault: describeTooLong(limit) }
  const parsed = parseJson(Buffer.concat(chunks))
  if ('fault' in parsed) yield { kind: 'fault', place, fault: parsed.fault }
  else yield { kind: 'resource', place, resource: withId(parsed.value), bytes: length }
}

export function describeTooLong(limit: number): string {
  return `Longer than ${Math.round(limit / 1024 / 1024)} MiB`
}
