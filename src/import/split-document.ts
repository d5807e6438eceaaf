/** A part of a JSON document: an item of its list (`Bundle.entry`, or the items of an array), or all the rest. */
export type DocumentPart =
  | { readonly kind: 'item'; readonly line: number; readonly bytes: Buffer }
  | { readonly kind: 'too-long'; readonly line: number }
  /** The document with an empty list; last. */
  | { readonly kind: 'frame'; readonly bytes: Buffer }
  /** The document ends early, or something follows it; last, in place of the frame. */
  | { readonly kind: 'broken'; readonly line: number; readonly reason: string }

const QUOTE = 0x22
const BACKSLASH = 0x5c
const NEWLINE = 0x0a
/** Longer keys than `entry` do not matter. */
const KEY_LENGTH = 8

/**
 * Splits a document into its items while it is read, so that a Bundle of any size needs little memory. It follows strings
 * and brackets only; the caller parses the items.
 */
export async function* splitDocument(
  source: AsyncIterable<Buffer>,
  limit: number,
): AsyncGenerator<DocumentPart> {
  const splitter = new Splitter(limit)
  for await (const chunk of source) {
    splitter.read(chunk)
    yield* splitter.parts.splice(0)
  }
  yield* splitter.parts
  yield splitter.last()
}

class Splitter {
  readonly parts: DocumentPart[] = []
  readonly #limit: number
  readonly #frame = new Piece()
  readonly #item = new Piece()
  #depth = 0
  #inString = false
  #escaped = false
  /** The depth of the items: one below the root array, or below `entry` of the root object. */
  #itemDepth = 0
  #inItem = false
  #itemLine = 1
  #line = 1
  #lastString = new Piece()
  #done = false
  #extra = false

  constructor(limit: number) {
    this.#limit = limit
  }

  read(chunk: Buffer): void {
    let from = 0
    for (let at = 0; at < chunk.length; at++) {
      if (this.#inString) at = this.#readString(chunk, at)
      else from = this.#readToken(chunk[at] ?? 0, chunk, from, at)
    }
    this.#keep(chunk.subarray(from))
  }

  last(): DocumentPart {
    if (!this.#done)
      return { kind: 'broken', line: this.#line, reason: 'The document ends early: it is cut off' }
    if (this.#extra)
      return { kind: 'broken', line: this.#line, reason: 'Something follows after the document' }
    if (this.#frame.length > this.#limit) return { kind: 'too-long', line: 1 }
    return { kind: 'frame', bytes: this.#frame.take() }
  }

  /** Reads a byte outside of strings. Returns where the bytes begin that are not yet kept. */
  #readToken(byte: number, chunk: Buffer, from: number, at: number): number {
    if (this.#done && byte > 0x20) this.#extra = true
    switch (byte) {
      case QUOTE:
        this.#inString = true
        if (this.#depth === 1) this.#lastString.clear()
        return from
      case NEWLINE:
        this.#line++
        return from
      case 0x7b:
      case 0x5b:
        return this.#open(byte, chunk, from, at)
      case 0x7d:
      case 0x5d:
        return this.#close(chunk, from, at)
      default:
        return from
    }
  }

  /** The end of the current string, or of the chunk. */
  #readString(chunk: Buffer, start: number): number {
    let at = start
    for (; at < chunk.length; at++) {
      const byte = chunk[at]
      if (this.#escaped) this.#escaped = false
      else if (byte === BACKSLASH) this.#escaped = true
      else if (byte === QUOTE) {
        this.#inString = false
        break
      }
    }
    if (this.#depth === 1) this.#lastString.addUpTo(chunk.subarray(start, at), KEY_LENGTH)
    return at
  }

  #open(byte: number, chunk: Buffer, from: number, at: number): number {
    this.#depth++
    if (this.#depth === 1 && byte === 0x5b) return this.#beginList(1, chunk, from, at)
    if (this.#depth === 2 && byte === 0x5b && this.#itemDepth === 0 && this.#lastString.text() === 'entry')
      return this.#beginList(2, chunk, from, at)
    if (this.#itemDepth === 0 || this.#depth !== this.#itemDepth + 1) return from
    this.#inItem = true
    this.#itemLine = this.#line
    return at
  }

  #beginList(depth: number, chunk: Buffer, from: number, at: number): number {
    this.#keep(chunk.subarray(from, at + 1))
    this.#itemDepth = depth
    return at + 1
  }

  #close(chunk: Buffer, from: number, at: number): number {
    this.#depth--
    if (this.#inItem && this.#depth === this.#itemDepth) return this.#endItem(chunk, from, at)
    if (this.#itemDepth > 0 && this.#depth === this.#itemDepth - 1) {
      this.#itemDepth = 0
      this.#lastString.clear()
      from = at
    }
    if (this.#depth === 0) this.#done = true
    return from
  }

  #endItem(chunk: Buffer, from: number, at: number): number {
    this.#keep(chunk.subarray(from, at + 1))
    this.#inItem = false
    const line = this.#itemLine
    if (this.#item.length > this.#limit) this.parts.push({ kind: 'too-long', line })
    else this.parts.push({ kind: 'item', line, bytes: this.#item.take() })
    this.#item.clear()
    return at + 1
  }

  /** Commas and spaces between items are dropped. */
  #keep(bytes: Buffer): void {
    if (this.#inItem) this.#item.addUpTo(bytes, this.#limit)
    else if (this.#itemDepth === 0) this.#frame.addUpTo(bytes, this.#limit)
  }
}

/** Bytes from several chunks. Beyond a limit only their length is kept. */
class Piece {
  #parts: Buffer[] = []
  length = 0

  addUpTo(part: Buffer, limit: number): void {
    this.length += part.length
    if (this.length <= limit) this.#parts.push(part)
    else this.#parts = []
  }

  take(): Buffer {
    return Buffer.concat(this.#parts)
  }

  text(): string {
    return this.take().toString('latin1')
  }

  clear(): void {
    this.#parts = []
    this.length = 0
  }
}
