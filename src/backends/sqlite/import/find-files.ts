import { type Dirent, realpathSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { describeReadFailure } from './read-bytes.ts'
import type { Unreadable } from './report.ts'

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
