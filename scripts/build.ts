/**
 * `npm run build [-- <folder>] [--without-documentation]`: the npm package (`npm pack ./dist`). Plain JavaScript, because Node does not strip types below
 * `node_modules`. Launcher and interceptor run on Node 20; only the interceptor has types and no dependency.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

const ROOT = resolve(import.meta.dirname, '..')
/** What the README links to. The sources of the program and the records for its developers are left out. */
const DOCUMENTATION = [
  'README.md',
  'SECURITY.md',
  'CHANGELOG.md',
  'ARCHITECTURE.md',
  'docs',
  'examples',
  'vectors',
  'deploy',
]
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { 'without-documentation': { type: 'boolean' } },
})
const folder = resolve(positionals[0] ?? join(ROOT, 'dist'))
const documentation = values['without-documentation'] ? [] : DOCUMENTATION

rmSync(folder, { recursive: true, force: true })
compile('tsconfig.build.json')
// The second one replaces the modules that both have.
compile('tsconfig.build-node20.json')
for (const path of ['src/web/assets', 'src/fhir/definitions/r4.json', 'LICENSE', ...documentation]) copy(path)
for (const path of globSync('**/*.md', { cwd: folder, exclude: ['node_modules'] }))
  adaptPage(join(folder, path))
writeJson('package.json', createManifest())
writeJson('src/launcher/nodes.json', listNodes())

function compile(project: string): void {
  const { status } = spawnSync('tsc', ['-p', project, '--outDir', folder], { cwd: ROOT, stdio: 'inherit' })
  if (status !== 0) process.exit(1)
}

function copy(path: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  cpSync(join(ROOT, path), join(folder, path), { recursive: true, filter: isForUsers })
}

function writeJson(path: string, value: object): void {
  writeFileSync(join(folder, path), `${JSON.stringify(value, undefined, 2)}\n`)
}

function readJson(path: string) {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8'))
}

/** The packages with a Node that the launcher may install, which are no dependencies of the package. */
function listNodes(): object {
  const { packages } = readJson('package-lock.json')
  return Object.fromEntries(
    Object.keys(readJson('package.json').optionalDependencies).map(name => {
      const { version, integrity } = packages[`node_modules/${name}`]
      return [name, { version, integrity }]
    }),
  )
}

function createManifest(): object {
  const { name, version, description, license, type, engines, dependencies } = readJson('package.json')
  return {
    name,
    version,
    description,
    license,
    type,
    engines,
    bin: { sallyport: 'src/launcher/main.js' },
    exports: {
      './interceptor': {
        types: './src/interceptor/index.d.ts',
        default: './src/interceptor/index.js',
      },
      './package.json': './package.json',
    },
    dependencies,
  }
}

function isForUsers(path: string): boolean {
  return !/\.test\.ts$|\/examples\/upstream\.ts$|\/docs\/internal$/.test(path)
}

/** A link to a file that the package does not contain becomes its text. */
function adaptPage(file: string): void {
  const page = readFileSync(file, 'utf8')
  const adapted = page.replace(/(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)#]*)[^)]*\)/g, (link, text, path) =>
    existsSync(join(dirname(file), path)) ? link : text,
  )
  writeFileSync(file, adapted)
}
