import { formatExact, parseExact, shapeResponse } from '../../fhir/index.ts'
import type { ExportRow } from '../backend.ts'
import type { ExportOrder } from '../exports.ts'

/** A line of a file: the resource as stored, as far as the client wants it. */
export function formatLine({ type, text }: ExportRow, { elements }: ExportOrder): string {
  if (elements.length === 0) return text
  const wanted = listElements(elements, type)
  return wanted.length === 0 ? text : shapeResponse(text, { summary: 'false', elements: wanted })
}

/** JSON without line breaks. */
export function toLine(text: string): string {
  return text.includes('\n') ? formatExact(parseExact(text)) : text
}

function listElements(elements: readonly string[], type: string): readonly string[] {
  return elements.flatMap(it => {
    const [of, element] = it.includes('.') ? it.split('.') : [type, it]
    return of === type && element !== undefined ? [element] : []
  })
}

/** Bytes that are sent at once. */
const PIECE = 65_536

/** Lines are written where they are sent from: joined texts would be copied twice more. */
export class LineWriter {
  readonly #baseUrl: string
  #bytes = NONE
  #end = 0

  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl
  }

  /** Returns the lines before, if this one does not fit. */
  add(line: string): Buffer | undefined {
    // A character of a JavaScript text takes three bytes of UTF-8 at most.
    const most = 3 * line.length < PIECE ? 3 * line.length + 1 : Buffer.byteLength(line) + 1
    let full: Buffer | undefined
    if (this.#end + most > this.#bytes.length) {
      full = this.take()
      this.#bytes = Buffer.allocUnsafe(Math.max(PIECE, most))
    }
    this.#end += this.#bytes.write(line, this.#end)
    this.#bytes[this.#end++] = LINE_FEED
    return full
  }

  /** The lines that were not returned yet. */
  take(): Buffer | undefined {
    const lines = this.#bytes.subarray(0, this.#end)
    this.#bytes = NONE
    this.#end = 0
    return lines.length === 0 ? undefined : addBase(lines, this.#baseUrl)
  }
}

const NONE = Buffer.alloc(0)
const LINE_FEED = 10

/** The URLs of attachments are absolute, so that they can be opened (Bulk Data Access 3.0.0, Attachments). */
function addBase(lines: Buffer, baseUrl: string): Buffer {
  if (!lines.includes('Binary/')) return lines
  return Buffer.from(lines.toString().replace(ATTACHED, `$1${baseUrl}/Binary/`))
}

// In JSON the quotation marks of a text are escaped, so that this is a member and not a part of a text.
const ATTACHED = /("url"\s*:\s*")Binary\//g

/** A line about a resource that was deleted (Bulk Data Access 3.0.0, Output Manifest). */
export function formatDeletion({ type, id }: ExportRow): string {
  return JSON.stringify({
    resourceType: 'Bundle',
    type: 'transaction',
    entry: [{ request: { method: 'DELETE', url: `${type}/${id}` } }],
  })
}

/** The line before the resources of a patient (Bulk Data Access 3.0.0, Bulk Data Output File Organization). */
export function formatHeader(patient: string | undefined): string {
  const valueReference = { reference: `Patient/${patient}` }
  return JSON.stringify({ resourceType: 'Parameters', parameter: [{ name: 'header', valueReference }] })
}
