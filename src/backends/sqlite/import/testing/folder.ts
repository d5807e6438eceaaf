import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after } from 'node:test'

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
