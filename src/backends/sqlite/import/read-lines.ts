import { type BundleEntry, bundleEntry, bundleFault } from './bundle-entry.ts'
import { bytesOf } from './bytes.ts'
import type { Candidate } from './candidate.ts'
import type { InputFile } from './find-files.ts'
import { identified } from './identity.ts'
import { type Line, linesOf } from './lines.ts'
import { isObject, parseJson } from './parse-json.ts'
import { tooLong } from './read-document.ts'
import { isConditional, referencesIn, replaceReferences } from './references.ts'
import type { Place } from './report.ts'

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
