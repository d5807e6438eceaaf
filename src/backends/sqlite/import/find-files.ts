import { type Dirent, realpathSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { failureText } from './failure-text.ts'
import type { Unreadable } from './report.ts'

export interface InputFile {
  readonly path: string
  /** As the report calls it: what the user typed, and below a folder the way from there. */
  readonly label: string
  /** In bytes, as stored. */
  readonly size: number
}

export interface FoundFiles {
  readonly files: readonly InputFile[]
  readonly unreadable: readonly Unreadable[]
  /** Files of a folder whose name does not end like one of ours. */
  readonly passedOver: number
}

const readable = /\.(ndjson|jsonl|json)(\.gz)?$/i

/** The files to read, in the order of their names. A file that is named is always taken, whatever its name. */
export async function findFiles(names: readonly string[], cwd: string): Promise<FoundFiles> {
  const search = new Search()
  for (const name of names) await search.named(resolve(cwd, name), name)
  return search
}

class Search implements FoundFiles {
  readonly files: InputFile[] = []
  readonly unreadable: Unreadable[] = []
  passedOver = 0
  readonly #seen = new Set<string>()

  async named(path: string, label: string): Promise<void> {
    try {
      const entry = statSync(path)
      if (entry.isDirectory()) await this.#folder(path, label)
      else if (entry.isFile()) this.#add(path, label, entry.size)
      else this.unreadable.push({ file: label, reason: 'It is neither a file nor a folder' })
    } catch (error) {
      this.unreadable.push({ file: label, reason: failureText(error) })
    }
  }

  #add(path: string, label: string, size: number): void {
    const real = realpathSync(path)
    if (this.#seen.has(real)) return
    this.#seen.add(real)
    this.files.push({ path, label, size })
  }

  /** A folder is entered once, also where links lead back to it. */
  async #folder(path: string, label: string): Promise<void> {
    const real = realpathSync(path)
    if (this.#seen.has(real)) return
    this.#seen.add(real)
    const entries = await readdir(path, { withFileTypes: true })
    for (const entry of entries.sort(byName)) {
      if (entry.name.startsWith('.')) continue
      const below = join(path, entry.name)
      if (entry.isFile() && !readable.test(entry.name)) this.passedOver++
      else await this.named(below, join(label, relative(path, below)))
    }
  }
}

function byName(a: Dirent, b: Dirent): number {
  return a.name < b.name ? -1 : 1
}
