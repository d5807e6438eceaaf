/** Checks that every package that users install with Sallyport has a licence that allows it (package-lock.json). */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

const ALLOWED = [
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'ISC',
  'MIT',
  'PSF-2.0',
]

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: true; readonly license?: string }>>
}

const lock: Lock = JSON.parse(readFileSync(resolve(import.meta.dirname, '../package-lock.json'), 'utf8'))
const refused = Object.entries(lock.packages).filter(
  ([path, { dev, license = 'none' }]) => path !== '' && !dev && !ALLOWED.includes(license),
)
for (const [path, { license }] of refused)
  process.stderr.write(`${path.replace('node_modules/', '')} has the licence ${license ?? 'none'}\n`)
if (refused.length > 0) process.exitCode = 1
else process.stdout.write('licences: in order\n')
