import { isFailure } from '../core/index.ts'
import type { InputFile } from './find-files.ts'
import { formatMib } from './limits.ts'
import type { Candidate, Place } from './loader.ts'
import { readBytes } from './read-bytes.ts'
import { type FindConditional, parseBytes, readValue } from './read-document.ts'

/** A line of a file. Blank lines are skipped, but counted. */
type Line =
  | { readonly kind: 'text'; readonly number: number; readonly bytes: Buffer }
  | { readonly kind: 'too-long'; readonly number: number }

const NEWLINE = 0x0a

/** Splits bytes into lines. A line beyond the limit is not kept in memory. */
export async function* splitLines(source: AsyncIterable<Buffer>, limit: number): AsyncGenerator<Line> {
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
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
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

/** The resources of a file with one resource or Bundle per line. */
export async function* readLines(
  file: InputFile,
  limit: number,
  find: FindConditional,
  onRead: (bytes: number) => void,
): AsyncGenerator<Candidate> {
  for await (const line of splitLines(readBytes(file.path, onRead), limit)) {
    yield* readLine(line, { file: file.label, unit: 'line', number: line.number }, limit, find)
  }
}

function readLine(line: Line, place: Place, limit: number, find: FindConditional): Iterable<Candidate> {
  if (line.kind === 'too-long') return [{ kind: 'fault', place, fault: `Longer than ${formatMib(limit)}` }]
  const parsed = parseBytes(line.bytes)
  if (isFailure(parsed)) return [{ kind: 'fault', place, fault: parsed.fault }]
  return readValue(parsed.value, line.bytes.length, place, find).candidates
}
