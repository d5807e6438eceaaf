import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * What a CommonJS project needs of a package of ES modules: a file for `require`, which Node lets load ES modules, and the types again as
 * those of CommonJS. TypeScript refuses the others there: before 5.8 always, later with the resolution `node16`.
 */
export function writeCommonJs(folder: string, entries: readonly string[]): void {
  for (const entry of entries) {
    const name = entry.split('/').at(-1)
    writeFileSync(join(folder, `${entry}.cjs`), `module.exports = require('./${name}.js')\n`)
  }
  for (const path of globSync('src/**/*.d.ts', { cwd: folder })) {
    const types = readFileSync(join(folder, path), 'utf8')
    const adapted = types.replace(/((?:from |import\()['"]\.[^'"]*)\.[jt]s(['"])/g, '$1.cjs$2')
    writeFileSync(join(folder, path.replace(/\.d\.ts$/, '.d.cts')), adapted)
  }
}
