/**
 * `npm run build [-- <folder>] [--image] [--repository <URL>]`: the npm packages `sallyport` and `sallyport-interceptor`, each
 * in a subfolder of `dist` or of the folder. Plain JavaScript, because Node does not strip types below `node_modules`. The launcher
 * and the libraries (interceptor, API for tests) run on Node 20; only the libraries have types. With `--image`, only what the
 * container image runs. With `--repository`, the manifests name the repository, such as `https://github.com/owner/name`.
 * The program's own files (src/core/own-files.ts) are in each of them.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { BUILT_FILES, OWN_FILES, OWN_PROGRAMS } from '../src/core/own-files.ts'
import { writeCommonJs } from './build/common-js.ts'
import { type Manifest, makeShrinkwrap, pinDependencies } from './build/shrinkwrap.ts'

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
const LICENCES = ['LICENSE', 'NOTICE']
const LIBRARY_DOCUMENTATION = [
  'docs/interceptor.md',
  'examples/express-server.mjs',
  'examples/fastify-server.mjs',
]
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { image: { type: 'boolean' }, repository: { type: 'string' } },
})
const output = resolve(positionals[0] ?? join(ROOT, 'dist'))
const { version, license, type, engines, ...manifest } = readJson('package.json')
const lock = readJson('package-lock.json')

buildServers(join(output, 'sallyport'))
if (!values.image) buildInterceptor(join(output, 'sallyport-interceptor'))
print(`Done: ${output}`)

function buildServers(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  print('Compiling the servers: takes half a minute')
  compile('tsconfig.build.json', folder)
  print('Compiling the launcher and the libraries of the package sallyport')
  // These replace the modules that both have.
  compile('tsconfig.build-node20.json', folder)
  const documentation = values.image ? [] : DOCUMENTATION
  for (const path of [...OWN_FILES, ...LICENCES, ...documentation]) copy(path, folder)
  const libraries = { './interceptor': 'interceptor', './testing': 'testing-api' }
  const written = writePackage(folder, {
    name: manifest.name,
    description: manifest.description,
    bin: { sallyport: 'src/launcher/main.js' },
    exports: writeExports(folder, libraries),
    ...pinDependencies(lock),
  })
  writeJson(join(folder, 'npm-shrinkwrap.json'), makeShrinkwrap(written, lock))
  writeJson(join(folder, 'src/launcher/nodes.json'), listNodes())
  const needed = [...OWN_FILES, ...BUILT_FILES, ...OWN_PROGRAMS.map(path => `${path}.js`)]
  for (const path of needed) if (!existsSync(join(folder, path))) stop(`it has no ${path}`)
}

/** The interceptor and the modules that it imports, for servers that need nothing else. */
function buildInterceptor(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  print('Compiling the package sallyport-interceptor')
  compile('tsconfig.build-interceptor.json', folder)
  const own = OWN_FILES.filter(path => existsSync(join(folder, path.split('/').slice(0, 2).join('/'))))
  for (const path of [...own, ...LICENCES, ...LIBRARY_DOCUMENTATION]) copy(path, folder)
  const readme = readFileSync(join(ROOT, 'src/interceptor/README.md'), 'utf8')
  writeFileSync(join(folder, 'README.md'), readme.replaceAll('](../../', ']('))
  writePackage(folder, {
    name: 'sallyport-interceptor',
    description: 'SMART on FHIR access control for FHIR R4 servers on Express, Fastify or Node',
    exports: writeExports(folder, { '.': 'interceptor' }),
  })
}

function stop(reason: string): never {
  process.stderr.write(`Cannot build the package: ${reason}\n`)
  process.exit(1)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function compile(project: string, folder: string): void {
  const { status } = spawnSync('tsc', ['-p', project, '--outDir', folder], { cwd: ROOT, stdio: 'inherit' })
  if (status !== 0) process.exit(1)
}

function copy(path: string, folder: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  cpSync(join(ROOT, path), join(folder, path), { recursive: true, filter: isForUsers })
}

function writeJson(path: string, value: object): void {
  writeFileSync(path, `${JSON.stringify(value, undefined, 2)}\n`)
}

function readJson(path: string) {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8'))
}

/** The packages with a Node that the launcher may install, which are no dependencies of the package. */
function listNodes(): object {
  const { packages } = lock
  return Object.fromEntries(
    Object.keys(manifest.optionalDependencies).map(name => {
      const { version, integrity } = packages[`node_modules/${name}`]
      return [name, { version, integrity }]
    }),
  )
}

function isForUsers(path: string): boolean {
  return !/\.test\.ts$|\/examples\/upstream\.ts$|\/docs\/internal$/.test(path)
}

/** The entries of the libraries, for projects with ES modules and with CommonJS. */
function writeExports(folder: string, modules: Readonly<Record<string, string>>): object {
  writeCommonJs(
    folder,
    Object.values(modules).map(module => `src/${module}/index`),
  )
  const files = Object.entries(modules).map(([name, module]) => {
    const file = `./src/${module}/index`
    return [
      name,
      {
        import: { types: `${file}.d.ts`, default: `${file}.js` },
        require: { types: `${file}.d.cts`, default: `${file}.cjs` },
      },
    ]
  })
  return { ...Object.fromEntries(files), './package.json': './package.json' }
}

function writePackage(
  folder: string,
  { name, description, ...more }: Readonly<Record<string, unknown>>,
): Manifest {
  for (const path of globSync('**/*.md', { cwd: folder })) adaptPage(join(folder, path))
  const repository = values.repository && { type: 'git', url: `git+${values.repository}.git` }
  const written = { name, version, description, license, repository, type, engines, ...more }
  writeJson(join(folder, 'package.json'), written)
  return written
}

/** A link to a file that the package does not contain becomes its text. */
function adaptPage(file: string): void {
  const page = readFileSync(file, 'utf8')
  const adapted = page.replace(/(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)#]*)[^)]*\)/g, (link, text, path) =>
    existsSync(join(dirname(file), path)) ? link : text,
  )
  writeFileSync(file, adapted)
}
