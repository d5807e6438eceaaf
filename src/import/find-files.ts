import { type Dirent, realpathSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { parseJson } from '../core/index.ts'
import type { Unreadable } from './loader.ts'
import { describeReadFailure, isReadFailure, readBytes } from './read-bytes.ts'

export interface InputFile {
  readonly path: string
  /** The name in the report: as the user typed it, and below a folder the path from there. */
  readonly label: string
  /** In bytes, as stored. */
  readonly size: number
}

export interface FoundFiles {
  readonly files: readonly InputFile[]
  readonly unreadable: readonly Unreadable[]
  /** The number of files in folders that were skipped because of their extension. */
  readonly skipped: number
}

const EXTENSION = /\.(ndjson|jsonl|json)(\.gz)?$/i

/** The files to read, in the order of their names. A file that the user names is read whatever its extension. */
export async function findFiles(names: readonly string[], cwd: string): Promise<FoundFiles> {
  const search = new Search()
  for (const name of names) await search.addPath(resolve(cwd, name), name)
  return search
}

class Search implements FoundFiles {
  readonly files: InputFile[] = []
  readonly unreadable: Unreadable[] = []
  skipped = 0
  readonly #seen = new Set<string>()

  async addPath(path: string, label: string): Promise<void> {
    try {
      const entry = statSync(path)
      if (entry.isDirectory()) await this.#addFolder(path, label)
      else if (entry.isFile()) this.#addFile(path, label, entry.size)
      else this.unreadable.push({ file: label, reason: 'It is neither a file nor a folder' })
    } catch (error) {
      this.unreadable.push({ file: label, reason: describeReadFailure(error) })
    }
  }

  #addFile(path: string, label: string, size: number): void {
    const real = realpathSync(path)
    if (this.#seen.has(real)) return
    this.#seen.add(real)
    this.files.push({ path, label, size })
  }

  /** A folder is read once, even where links lead back to it. */
  async #addFolder(path: string, label: string): Promise<void> {
    const real = realpathSync(path)
    if (this.#seen.has(real)) return
    this.#seen.add(real)
    const entries = await readdir(path, { withFileTypes: true })
    for (const entry of entries.sort(compareNames)) {
      if (entry.name.startsWith('.')) continue
      const below = join(path, entry.name)
      if (entry.isFile() && !EXTENSION.test(entry.name)) this.skipped++
      else await this.addPath(below, join(label, relative(path, below)))
    }
  }
}

function compareNames(a: Dirent, b: Dirent): number {
  return a.name < b.name ? -1 : 1
}

/** The layout of a file: one resource per line, or one JSON document. */
type FileFormat =
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
  if (parseJson(firstLine) !== undefined) return text.startsWith('[')
  return end !== -1 || /"resourceType"\s*:\s*"Bundle"/.test(firstLine) || firstLine.startsWith('[')
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}
