import { Transform } from 'node:stream'
import { limits } from '../../../fhir/index.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = 0x20
const CLOSERS: ReadonlyMap<number, number> = new Map([
  [0x7b, 0x7d],
  [0x5b, 0x5d],
])
const CLOSING: ReadonlySet<number> = new Set(CLOSERS.values())

/**
 * Passes JSON on that is too long for memory, and fails at the first byte which shows that it is not one whole object: the
 * response breaks off, so that no client takes it for a complete one. It compares brackets and quotation marks only.
 */
export function createJsonCheck(): Transform {
  const open: number[] = []
  let inString = false
  let isEscaped = false
  let isBegun = false

  function isValid(byte: number): boolean {
    if (inString) {
      if (isEscaped) isEscaped = false
      else if (byte === BACKSLASH) isEscaped = true
      else if (byte === QUOTE) inString = false
      return true
    }
    const closer = CLOSERS.get(byte)
    if (closer !== undefined) {
      if (open.length === 0 && (isBegun || byte !== 0x7b)) return false
      isBegun = true
      return open.push(closer) <= limits.JSON_DEPTH
    }
    if (open.length === 0) return byte <= SPACE
    if (CLOSING.has(byte)) return open.pop() === byte
    inString = byte === QUOTE
    return true
  }

  return new Transform({
    transform: (chunk: Buffer, _encoding, done) => (chunk.every(isValid) ? done(null, chunk) : done(INVALID)),
    flush: done => done(isBegun && open.length === 0 ? null : INVALID),
  })
}

const INVALID = new Error('the JSON of the response is invalid')
