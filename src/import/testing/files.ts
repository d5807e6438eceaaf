import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after } from 'node:test'

/** Bytes that arrive in pieces of a size, as from a slow disk. */
export async function* chunked(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** All that comes, in one array. */
export async function collected<T>(source: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of source) items.push(item)
  return items
}

/** A folder of its own for the tests of a suite, removed after them. */
export function temporaryFolder(): {
  readonly path: string
  write(name: string, content: string | Buffer): string
} {
  const path = mkdtempSync(join(tmpdir(), 'sallyport-import-'))
  after(() => rmSync(path, { recursive: true, force: true }))
  return {
    path,
    write(name, content) {
      const file = join(path, name)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, content)
      return file
    },
  }
}
