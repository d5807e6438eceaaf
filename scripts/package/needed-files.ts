import { globSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { BUILT_FILES, OWN_FILES, OWN_PROGRAMS } from '../../src/core/own-files.ts'

const ROOT = resolve(import.meta.dirname, '../..')

/** Every file that the built program reads or starts, by its path in package and image. */
export function listNeededFiles(): readonly string[] {
  const own = OWN_FILES.flatMap(path =>
    statSync(join(ROOT, path)).isFile()
      ? [path]
      : globSync(`${path}/**/*.*`, { cwd: ROOT }).filter(file => !file.endsWith('.test.ts')),
  )
  return [...own, ...BUILT_FILES, ...OWN_PROGRAMS.map(path => `${path}.js`)]
}
