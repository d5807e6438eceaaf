import type { InputFile } from './find-files.ts'
import { isReadFailure, readBytes } from './read-bytes.ts'

/** The layout of a file: one resource per line, or one JSON document. */
export type FileFormat =
  | { readonly kind: 'lines' }
  | { readonly kind: 'document' }
  | { readonly kind: 'empty' }
  | { readonly kind: 'unknown'; readonly reason: string }

/** The number of bytes that decide. */
const PEEK_BYTES = 64 * 1024

/** Detects the format by name and first bytes: a `.json` file may have one resource per line, too. */
export async function detectFormat(file: InputFile): Promise<FileFormat> {
  return parseFormat(file.label, await peek(file))
}

/** The first bytes; of a file that ends early, those that can be read. */
async function peek(file: InputFile): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of readBytes(file.path)) {
      chunks.push(chunk)
      length += chunk.length
      if (length >= PEEK_BYTES) break
    }
  } catch (error) {
    if (length === 0 || !isReadFailure(error)) throw error
  }
  return Buffer.concat(chunks).subarray(0, PEEK_BYTES)
}

export function parseFormat(label: string, start: Buffer): FileFormat {
  const first = start.find(byte => !isSpace(byte))
  if (first === undefined) return { kind: 'empty' }
  if (start.subarray(0, 2).toString('latin1') === 'PK')
    return { kind: 'unknown', reason: 'It is a zip archive: unpack it first' }
  if (start.includes(0)) return { kind: 'unknown', reason: 'It is not JSON text' }
  if (/\.(ndjson|jsonl)(\.gz)?$/i.test(label)) return { kind: 'lines' }
  if (first !== 0x7b && first !== 0x5b) return { kind: 'unknown', reason: 'It is not JSON text' }
  return { kind: isDocument(start) ? 'document' : 'lines' }
}

/** A document continues after its first line, or is a Bundle that is longer than the bytes that were read. */
function isDocument(start: Buffer): boolean {
  const text = start.toString('latin1').trimStart()
  const end = text.indexOf('\n')
  const firstLine = end === -1 ? text : text.slice(0, end)
  if (isJson(firstLine)) return text.startsWith('[')
  return end !== -1 || /"resourceType"\s*:\s*"Bundle"/.test(firstLine) || firstLine.startsWith('[')
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}
