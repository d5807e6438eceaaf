import { randomUUID } from 'node:crypto'
import { isRecord } from '../core/index.ts'
import { formatExact, parseExact, toPlain } from './json.ts'
import { isResource, type Resource } from './resource.ts'
import { tagSubsetted } from './search/result-parameters.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** What becomes of long strings in JSON. */
export interface LongStrings {
  /** Strings with more bytes are long. */
  readonly longest: number
  /** The text that replaces the next long string; undefined if it stays. `before` is the end of the JSON before it. */
  replace(before: string): string | undefined
  /** Takes the next bytes of the string that was replaced. */
  add?(bytes: Buffer): void
}

/** Enough for a name and a colon. */
const BEFORE = 64

/** JSON bytes that arrive in chunks, in which long strings are replaced. */
export class JsonSkimmer {
  readonly #long: LongStrings
  readonly #kept: Buffer[] = []
  #length = 0
  /** The index of the opening quotation mark in the kept bytes, inside a string. */
  #open: number | undefined
  /** What becomes of the string, once it is long. */
  #fate: 'replaced' | 'kept' | undefined
  /** Whether a backslash before this chunk escapes its first byte. */
  #isEscaped = false

  constructor(long: LongStrings) {
    this.#long = long
  }

  /** The number of kept bytes. */
  get length(): number {
    return this.#length
  }

  push(chunk: Buffer): void {
    let from = 0
    for (let at = 0; at < chunk.length; ) {
      const found = this.#open === undefined ? chunk.indexOf(QUOTE, at) : this.#findClose(chunk, at)
      const end = found < 0 ? chunk.length : found
      if (this.#open === undefined) {
        if (found >= 0) this.#open = this.#length + found - from
      } else {
        from = this.#skipLong(chunk, from, end, this.#open)
        if (found >= 0) this.#open = undefined
      }
      at = end + 1
    }
    this.#keep(chunk.subarray(from))
  }

  finish(): string {
    return Buffer.concat(this.#kept).toString('utf8')
  }

  /** Replaces the string that began at `open` if it is long. Returns the index from which the chunk is kept. */
  #skipLong(chunk: Buffer, from: number, end: number, open: number): number {
    const isNew = !this.#fate && this.#length + end - from - open - 1 > this.#long.longest
    if (isNew) {
      this.#keep(chunk.subarray(from, end))
      this.#fate = this.#replaceFrom(open + 1)
    } else if (this.#fate === 'replaced') this.#long.add?.(chunk.subarray(from, end))
    const isKept = !isNew && this.#fate !== 'replaced'
    // The string ends in this chunk.
    if (end < chunk.length) this.#fate = undefined
    return isKept ? from : end
  }

  /** Replaces the kept bytes from an index on, which are the beginning of a long string. */
  #replaceFrom(start: number): 'replaced' | 'kept' {
    const bytes = this.#cut(start)
    const replacement = this.#long.replace(this.#readEnd())
    if (replacement === undefined) this.#keep(bytes)
    else {
      this.#keep(Buffer.from(replacement))
      this.#long.add?.(bytes)
    }
    return replacement === undefined ? 'kept' : 'replaced'
  }

  /** The last kept bytes, without the quotation mark that opens the string. */
  #readEnd(): string {
    let end = ''
    for (let at = this.#kept.length - 1; at >= 0 && end.length <= BEFORE; at--)
      end = (this.#kept[at] ?? Buffer.alloc(0)).subarray(-BEFORE - 1).toString('latin1') + end
    return end.slice(0, -1)
  }

  /** The index of the quotation mark that closes the string; negative if it is in a later chunk. */
  #findClose(chunk: Buffer, from: number): number {
    for (let at = chunk.indexOf(QUOTE, from); at >= 0; at = chunk.indexOf(QUOTE, at + 1))
      if (!this.#endsEscaped(chunk, from, at)) {
        this.#isEscaped = false
        return at
      }
    this.#isEscaped = this.#endsEscaped(chunk, from, chunk.length)
    return -1
  }

  /** Whether an odd number of backslashes of the string precede the index. */
  #endsEscaped(chunk: Buffer, from: number, at: number): boolean {
    let first = at
    while (first > from && chunk[first - 1] === BACKSLASH) first--
    const isOdd = (at - first) % 2 === 1
    return first === 0 && this.#isEscaped ? !isOdd : isOdd
  }

  #keep(bytes: Buffer): void {
    if (bytes.length === 0) return
    this.#kept.push(bytes)
    this.#length += bytes.length
  }

  /** Removes the kept bytes from an index on, and returns them. */
  #cut(length: number): Buffer {
    const removed: Buffer[] = []
    while (this.#length > length) {
      const last = this.#kept.pop() ?? Buffer.alloc(0)
      this.#length -= last.length
      const keptPart = Math.max(length - this.#length, 0)
      removed.unshift(last.subarray(keptPart))
      this.#keep(last.subarray(0, keptPart))
    }
    return removed.length === 1 ? (removed[0] ?? Buffer.alloc(0)) : Buffer.concat(removed)
  }
}

/** Stands for a string that was left out. Random, so that no string can be mistaken for it. */
export const OMITTED = randomUUID()

/** A resource without its long strings. */
export interface PartialResource {
  readonly resource: Resource
  /** JSON, with the tag of an incomplete resource. */
  readonly text: string
}

/** The rest of a resource in which `OMITTED` stands for strings; undefined if nothing was left out. Throws if it is not JSON. */
export function readPartial(text: string): PartialResource | undefined {
  const rest = text.includes(OMITTED) ? dropOmitted(parseExact(text)) : undefined
  const resource = toPlain(rest)
  if (!isResource(rest) || !isResource(resource)) return undefined
  return { resource, text: formatExact(tagSubsetted(rest)) }
}

function dropOmitted(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter(it => it !== OMITTED).map(dropOmitted)
  if (!isRecord(value)) return value
  const kept = Object.entries(value).filter(([name, it]) => it !== OMITTED && name !== OMITTED)
  return Object.fromEntries(kept.map(([name, it]) => [name, dropOmitted(it)]))
}
