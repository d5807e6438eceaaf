/**
 * `npm run build [folder]`: the interceptor as an npm package of its own (`npm publish ./dist`). Plain JavaScript,
 * because Node does not strip types below `node_modules`; no dependencies, because its modules have none.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '..')
const folder = resolve(process.argv[2] ?? join(ROOT, 'dist'))

rmSync(folder, { recursive: true, force: true })
const { status } = spawnSync('tsc', ['-p', 'tsconfig.build.json', '--outDir', folder], {
  cwd: ROOT,
  stdio: 'inherit',
})
if (status !== 0) process.exit(1)

mkdirSync(join(folder, 'fhir/definitions'), { recursive: true })
copyFileSync(join(ROOT, 'src/fhir/definitions/r4.json'), join(folder, 'fhir/definitions/r4.json'))
copyFileSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'))
for (const [from, to] of [
  ['docs/interceptor.md', 'README.md'],
  ['SECURITY.md', 'SECURITY.md'],
  ['CHANGELOG.md', 'CHANGELOG.md'],
] as const)
  writeFileSync(join(folder, to), removeRelativeLinks(readFileSync(join(ROOT, from), 'utf8')))

const { name, version, description, license } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const entry = { types: './interceptor/index.d.ts', default: './interceptor/index.js' }
const manifest = {
  name,
  version,
  description,
  license,
  type: 'module',
  engines: { node: '>=20' },
  exports: { './interceptor': entry },
  peerDependencies: { fastify: '>=5' },
  peerDependenciesMeta: { fastify: { optional: true } },
}
writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`)

/** The package does not contain the pages and sources that the documents link to. */
function removeRelativeLinks(markdown: string): string {
  return markdown.replace(/\[([^\]]+)\]\((?!https?:|#)[^)]*\)/g, '$1')
}
