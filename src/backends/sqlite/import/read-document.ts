import { bundleEntry, bundleFault } from './bundle-entry.ts'
import { bytesOf } from './bytes.ts'
import type { Candidate } from './candidate.ts'
import { isReadFailure } from './failure-text.ts'
import type { InputFile } from './find-files.ts'
import { identified } from './identity.ts'
import { isObject, parseJson } from './parse-json.ts'
import { isConditional, type Replacements, referencesIn, replaceReferences } from './references.ts'
import { splitDocument } from './split-document.ts'

/** What a first reading of a document tells, before anything of it is imported. */
export interface Survey {
  readonly kind: 'bundle' | 'array' | 'resource'
  /** Full addresses of entries and what they are called here. */
  readonly names: Map<string, string>
  /** Conditional references, to be looked up. */
  readonly conditionals: Set<string>
  /** Nothing of the document is imported, for this reason. */
  readonly fault?: string
}

/**
 * Reads a document to its end for the names that its entries use for each other: an entry may refer to a later one.
 * Memory holds the names, not the entries.
 */
export async function surveyDocument(file: InputFile, limit: number): Promise<Survey> {
  const names = new Map<string, string>()
  const conditionals = new Set<string>()
  try {
    for await (const part of splitDocument(bytesOf(file.path), limit)) {
      if (part.kind === 'item') surveyEntry(part.bytes, names, conditionals)
      if (part.kind === 'frame') return { ...kindOf(part.bytes), names, conditionals }
    }
  } catch (error) {
    if (!isReadFailure(error)) throw error
  }
  // It breaks off: what is whole is imported, and the second reading tells where it ends.
  return { kind: 'bundle', names, conditionals }
}

function kindOf(frame: Buffer): Pick<Survey, 'kind' | 'fault'> {
  const parsed = parseJson(frame)
  if ('fault' in parsed) return { kind: 'bundle', fault: parsed.fault }
  if (Array.isArray(parsed.value)) return { kind: 'array' }
  if (!isObject(parsed.value) || parsed.value.resourceType !== 'Bundle') return { kind: 'resource' }
  const fault = bundleFault(parsed.value.type)
  return fault === undefined ? { kind: 'bundle' } : { kind: 'bundle', fault }
}

function surveyEntry(bytes: Buffer, names: Map<string, string>, conditionals: Set<string>): void {
  const parsed = parseJson(bytes)
  if ('fault' in parsed) return
  const entry = bundleEntry(parsed.value)
  if (entry.kind !== 'resource') return
  const { resource, fullUrl } = entry
  if (fullUrl !== undefined) names.set(fullUrl, `${resource.resourceType}/${resource.id}`)
  for (const reference of referencesIn(resource)) if (isConditional(reference)) conditionals.add(reference)
}

/** The resources of a document, each with the line on which it begins. */
export async function* readDocument(
  file: InputFile,
  survey: Survey,
  by: Replacements,
  limit: number,
  onRead: (bytes: number) => void,
): AsyncGenerator<Candidate> {
  if (survey.kind === 'resource') return yield* wholeDocument(file, limit, onRead)
  const place = (line: number) => ({ file: file.label, line })
  for await (const part of splitDocument(bytesOf(file.path, onRead), limit)) {
    if (part.kind === 'broken') yield { kind: 'broken', place: place(part.line), reason: part.reason }
    else if (part.kind === 'too-long') yield { kind: 'fault', place: place(part.line), fault: tooLong(limit) }
    else if (part.kind === 'item' && survey.fault === undefined)
      yield* entryCandidate(part.bytes, survey.kind, by, place(part.line))
  }
  if (survey.fault !== undefined) yield { kind: 'fault', place: place(1), fault: survey.fault }
}

function* entryCandidate(
  bytes: Buffer,
  kind: Survey['kind'],
  by: Replacements,
  place: Candidate['place'],
): Generator<Candidate> {
  const parsed = parseJson(bytes)
  if ('fault' in parsed) return yield { kind: 'fault', place, fault: parsed.fault }
  if (kind === 'array')
    return yield { kind: 'resource', place, resource: identified(parsed.value), bytes: bytes.length }
  const entry = bundleEntry(parsed.value)
  if (entry.kind === 'fault') yield { kind: 'fault', place, fault: entry.fault }
  if (entry.kind === 'resource')
    yield { kind: 'resource', place, resource: replaceReferences(entry.resource, by), bytes: bytes.length }
}

/** A resource that fills the file. (A List has an `entry`, too: only the whole tells.) */
async function* wholeDocument(
  file: InputFile,
  limit: number,
  onRead: (bytes: number) => void,
): AsyncGenerator<Candidate> {
  const place = { file: file.label, line: 1 }
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of bytesOf(file.path, onRead)) {
    length += chunk.length
    if (length <= limit) chunks.push(chunk)
  }
  if (length > limit) return yield { kind: 'fault', place, fault: tooLong(limit) }
  const parsed = parseJson(Buffer.concat(chunks))
  if ('fault' in parsed) yield { kind: 'fault', place, fault: parsed.fault }
  else yield { kind: 'resource', place, resource: identified(parsed.value), bytes: length }
}

export function tooLong(limit: number): string {
  return `Longer than ${Math.round(limit / 1024 / 1024)} MiB`
}
