import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type Failed, fail } from '../core/index.ts'
import type { ExportManifest } from './manifest.ts'

/** Something is in the place of the export, which is not overwritten. */
export interface Occupied extends Failed {
  /** As the user named it, and what is there. */
  readonly text: string
}

interface OpenFile {
  readonly type: string
  readonly name: string
  readonly file: number
  /** Lines that are not written yet. */
  waiting: string
  count: number
}

/** A place in a file to which `cut` goes back. */
interface Mark {
  readonly bytes: number
  readonly count: number
}

/** Characters that are written, and compressed, at once. */
const CHUNK = 262_144

const MANIFEST = 'manifest.json'

/** A single file has the lines of all types, and no manifest. */
function isSingleFile(path: string): boolean {
  return /\.ndjson(\.gz)?$/.test(path) && !(existsSync(path) && statSync(path).isDirectory())
}

/**
 * The files of an export, which only their owner can read. Each has a temporary name, which an import ignores, until all are
 * complete and on disk. The manifest gets its name last.
 */
export class ExportFiles {
  readonly #folder: string
  readonly #single: string | undefined
  readonly #isCompressed: boolean
  readonly #made: readonly string[]
  readonly #open = new Map<string, OpenFile>()
  /** Files that exist by now, to be removed if the export fails. */
  readonly #created = new Set<string>()

  /** Creates the folder. Throws if it cannot be created. */
  static open(path: string, isCompressed: boolean): ExportFiles | Occupied {
    if (isSingleFile(path)) {
      if (existsSync(path)) return fail({ text: 'the file exists' })
      return new ExportFiles(dirname(path), basename(path), isCompressed || path.endsWith('.gz'))
    }
    const [first] = existsSync(path) ? readdirSync(path) : []
    if (first !== undefined) return fail({ text: `the folder is not empty: it has ${first}` })
    return new ExportFiles(path, undefined, isCompressed)
  }

  private constructor(folder: string, single: string | undefined, isCompressed: boolean) {
    this.#folder = folder
    this.#single = single
    this.#isCompressed = isCompressed
    const first = mkdirSync(folder, { recursive: true, mode: 0o700 })
    this.#made = first === undefined ? [] : listFolders(folder, first)
  }

  append(type: string, line: string): void {
    const file = this.#get(type)
    file.waiting += `${line}\n`
    file.count++
    if (file.waiting.length >= CHUNK) this.#write(file)
  }

  /** The present end of the file of a type. */
  mark(type: string): Mark {
    const file = this.#get(type)
    this.#write(file)
    return { bytes: fstatSync(file.file).size, count: file.count }
  }

  /** Removes what was appended after a mark. */
  cut(type: string, { bytes, count }: Mark): void {
    const file = this.#get(type)
    file.waiting = ''
    file.count = count
    ftruncateSync(file.file, bytes)
  }

  /** Gives the files their names, and returns the number of lines. */
  finish({ transactionTime, request }: Pick<ExportManifest, 'transactionTime' | 'request'>): number {
    const files = [...this.#open.values()]
    const full = files.filter(it => it.count > 0)
    for (const file of files) {
      this.#write(file)
      fsyncSync(file.file)
      closeSync(file.file)
      this.#open.delete(file.name)
    }
    for (const { name, count } of files) if (count === 0) this.#remove(this.#temporary(name))
    for (const { name } of full) this.#rename(name)
    if (this.#single === undefined) {
      const output = full.map(({ type, name, count }) => ({ type, url: name, count }))
      const manifest: ExportManifest = {
        transactionTime,
        request,
        requiresAccessToken: false,
        output,
        deleted: [],
        error: [],
      }
      this.#writeManifest(JSON.stringify(manifest, undefined, 2))
    }
    syncFolder(this.#folder)
    return full.reduce((sum, { count }) => sum + count, 0)
  }

  /** Removes everything that the export has created. */
  discard(): void {
    for (const { file } of this.#open.values()) closeSync(file)
    this.#open.clear()
    for (const path of this.#created) rmSync(path, { force: true })
    this.#created.clear()
    for (const folder of this.#made) if (readdirSync(folder).length === 0) rmdirSync(folder)
  }

  #get(type: string): OpenFile {
    const name = this.#single ?? `${type}.ndjson${this.#isCompressed ? '.gz' : ''}`
    const known = this.#open.get(name)
    if (known) return known
    const created = { type, name, file: this.#create(this.#temporary(name)), waiting: '', count: 0 }
    this.#open.set(name, created)
    return created
  }

  /** Appends to a file that must be new. */
  #create(path: string): number {
    const file = openSync(path, 'ax', 0o600)
    this.#created.add(path)
    return file
  }

  #write(file: OpenFile): void {
    if (file.waiting === '') return
    writeFileSync(file.file, this.#isCompressed ? gzipSync(file.waiting) : file.waiting)
    file.waiting = ''
  }

  #temporary(name: string): string {
    return join(this.#folder, `.${name}.part`)
  }

  #rename(name: string): void {
    const path = join(this.#folder, name)
    if (existsSync(path)) throw new Error(`${name} was created meanwhile`)
    renameSync(this.#temporary(name), path)
    this.#created.delete(this.#temporary(name))
    this.#created.add(path)
  }

  #remove(path: string): void {
    rmSync(path)
    this.#created.delete(path)
  }

  #writeManifest(text: string): void {
    syncFolder(this.#folder)
    const file = this.#create(this.#temporary(MANIFEST))
    try {
      writeFileSync(file, `${text}\n`)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    this.#rename(MANIFEST)
  }
}

/** The folders that were created, innermost first. */
function listFolders(folder: string, first: string): readonly string[] {
  return folder === first ? [folder] : [folder, ...listFolders(dirname(folder), first)]
}

/** Names are on disk when the folder is. Windows has no such call for folders. */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') return
  const file = openSync(folder, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
