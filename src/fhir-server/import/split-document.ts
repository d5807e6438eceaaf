/** A part of a JSON document: an item of its list (`Bundle.entry`, or the items of an array), or all the rest. */
export type DocumentPart =
  | { readonly kind: 'item'; readonly line: number; readonly bytes: Buffer }
  | { readonly kind: 'too-long'; readonly line: number }
  /** The document with its list left empty; last. */
  | { readonly kind: 'frame'; readonly bytes: Buffer }
  /** The document ends before it is complete, or goes on after it; last, in the place of the frame. */
  | { readonly kind: 'broken'; readonly line: number; readonly reason: string }

const quote = 0x22
const backslash = 0x5c
const newline = 0x0a

/**
 * Cuts a document into its items as it is read, so that a Bundle of any size passes through little memory. It only
 * follows strings and brackets; whether the pieces are JSON is for their reader to say.
 */
export async function* splitDocument(
  source: AsyncIterable<Buffer>,
  limit: number,
): AsyncGenerator<DocumentPart> {
  const cutter = new Cutter(limit)
  for await (const chunk of source) {
    cutter.read(chunk)
    yield* cutter.parts.splice(0)
  }
  yield* cutter.parts
  yield cutter.last()
}

class Cutter {
  readonly parts: DocumentPart[] = []
  readonly #limit: number
  readonly #frame = new Piece()
  readonly #item = new Piece()
  #depth = 0
  #inString = false
  #escaped = false
  /** Where the items are: one level below the root array, or below `entry` of the root object. */
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
      const byte = chunk[at] ?? 0
      if (byte === newline) this.#line++
      if (this.#inString) this.#string(byte)
      else if (byte === quote) this.#openString()
      else if (byte === 0x7b || byte === 0x5b) from = this.#open(byte, chunk, from, at)
      else if (byte === 0x7d || byte === 0x5d) from = this.#close(chunk, from, at)
      else if (this.#done && byte > 0x20) this.#extra = true
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

  #openString(): void {
    this.#inString = true
    if (this.#depth === 1) this.#lastString.clear()
  }

  #string(byte: number): void {
    if (this.#escaped) this.#escaped = false
    else if (byte === backslash) this.#escaped = true
    else if (byte === quote) this.#inString = false
    else if (this.#depth === 1 && this.#lastString.length < 8) this.#lastString.add(Buffer.of(byte))
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

  /** Commas and spaces between the items belong to nothing. */
  #keep(bytes: Buffer): void {
    if (this.#inItem) this.#item.addUpTo(bytes, this.#limit)
    else if (this.#itemDepth === 0) this.#frame.addUpTo(bytes, this.#limit)
  }
}

/** Bytes that come in several chunks. Beyond a limit only their length is kept. */
class Piece {
  #parts: Buffer[] = []
  length = 0

  add(part: Buffer): void {
    this.length += part.length
    this.#parts.push(part)
  }

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
