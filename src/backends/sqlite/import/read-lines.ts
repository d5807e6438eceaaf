import { type BundleEntry, bundleEntry, bundleFault } from './bundle-entry.ts'
import { bytesOf } from './bytes.ts'
import type { Candidate } from './candidate.ts'
import type { InputFile } from './find-files.ts'
import { identified } from './identity.ts'
import { isObject, parseJson } from './parse-json.ts'
import { tooLong } from './read-document.ts'
import { isConditional, referencesIn, replaceReferences } from './references.ts'
import type { Place } from './report.ts'

/** A line of text, or why there is none. Blank lines are left out, but counted. */
type Line =
  | { readonly kind: 'text'; readonly number: number; readonly bytes: Buffer }
  | { readonly kind: 'too-long'; readonly number: number }

const newline = 0x0a

/** Splits bytes into lines. Of a line beyond the limit nothing is kept but its number. */
export async function* linesOf(source: AsyncIterable<Buffer>, limit: number): AsyncGenerator<Line> {
  let parts: Buffer[] = []
  let length = 0
  let number = 1
  const take = (part: Buffer) => {
    length += part.length
    if (length <= limit) parts.push(part)
    else parts = []
  }
  const line = (): Line | undefined => {
    const whole = length > limit ? undefined : parts.length === 1 ? parts[0] : Buffer.concat(parts)
    if (whole === undefined) return length > limit ? { kind: 'too-long', number } : undefined
    return isBlank(whole) ? undefined : { kind: 'text', number, bytes: whole }
  }
  for await (const chunk of source) {
    let from = 0
    for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, from)) {
      take(chunk.subarray(from, at))
      const complete = line()
      if (complete !== undefined) yield complete
      parts = []
      length = 0
      number++
      from = at + 1
    }
    take(chunk.subarray(from))
  }
  const last = line()
  if (last !== undefined) yield last
}

function isBlank(bytes: Buffer): boolean {
  return bytes.every(byte => byte === 0x20 || byte === 0x0d || byte === 0x09)
}

/** Looks up a conditional reference. */
export type FindConditional = (reference: string) => string | undefined

/** The resources of a file that has one a line. A line may also be a Bundle. */
export async function* readLines(
  file: InputFile,
  limit: number,
  find: FindConditional,
  onRead: (bytes: number) => void,
): AsyncGenerator<Candidate> {
  for await (const line of linesOf(bytesOf(file.path, onRead), limit)) {
    yield* lineCandidates(line, { file: file.label, line: line.number }, limit, find)
  }
}

function* lineCandidates(
  line: Line,
  place: Place,
  limit: number,
  find: FindConditional,
): Generator<Candidate> {
  if (line.kind === 'too-long') return yield { kind: 'fault', place, fault: tooLong(limit) }
  const parsed = parseJson(line.bytes)
  if ('fault' in parsed) return yield { kind: 'fault', place, fault: parsed.fault }
  const { value } = parsed
  if (isObject(value) && value.resourceType === 'Bundle')
    yield* bundleCandidates(value, line.bytes.length, place, find)
  else yield { kind: 'resource', place, resource: identified(value), bytes: line.bytes.length }
}

function* bundleCandidates(
  bundle: Readonly<Record<string, unknown>>,
  length: number,
  place: Place,
  find: FindConditional,
): Generator<Candidate> {
  const fault = bundleFault(bundle.type)
  if (fault !== undefined) return yield { kind: 'fault', place, fault }
  const entries = Array.isArray(bundle.entry) ? bundle.entry.map(bundleEntry) : []
  const by = replacementsOf(entries, find)
  const bytes = length / Math.max(1, entries.length)
  for (const entry of entries) {
    if (entry.kind === 'fault') yield { kind: 'fault', place, fault: entry.fault }
    if (entry.kind === 'resource')
      yield { kind: 'resource', place, resource: replaceReferences(entry.resource, by), bytes }
  }
}

function replacementsOf(entries: readonly BundleEntry[], find: FindConditional): Map<string, string> {
  const by = new Map<string, string>()
  for (const entry of entries) {
    if (entry.kind !== 'resource') continue
    if (entry.fullUrl !== undefined)
      by.set(entry.fullUrl, `${entry.resource.resourceType}/${entry.resource.id}`)
    for (const reference of referencesIn(entry.resource)) {
      const found = isConditional(reference) ? find(reference) : undefined
      if (found !== undefined) by.set(reference, found)
    }
  }
  return by
}
