/**
 * `npm run build [-- <folder>] [--image] [--repository <URL>]`: the npm packages `sallyport` and `sallyport-interceptor`, each
 * in a subfolder of `dist` or of the folder. Plain JavaScript, because Node does not strip types below `node_modules`. The launcher
 * and the libraries (interceptor, API for tests) run on Node 20; only the libraries have types. With `--image`, only what the
 * container image runs. With `--repository`, the manifests name the repository, such as `https://github.com/owner/name`.
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
  for (const path of ['src/web/assets', 'src/fhir/definitions/r4.json', 'LICENSE', ...documentation])
    copy(path, folder)
  writePackage(folder, {
    name: manifest.name,
    description: manifest.description,
    bin: { sallyport: 'src/launcher/main.js' },
    exports: describeExports({ './interceptor': 'interceptor', './testing': 'testing-api' }),
    dependencies: manifest.dependencies,
  })
  writeJson(join(folder, 'src/launcher/nodes.json'), listNodes())
}

/** The interceptor and the modules that it imports, for servers that need nothing else. */
function buildInterceptor(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  print('Compiling the package sallyport-interceptor')
  compile('tsconfig.build-interceptor.json', folder)
  for (const path of ['src/fhir/definitions/r4.json', 'LICENSE', ...LIBRARY_DOCUMENTATION]) copy(path, folder)
  const readme = readFileSync(join(ROOT, 'src/interceptor/README.md'), 'utf8')
  writeFileSync(join(folder, 'README.md'), readme.replaceAll('](../../', ']('))
  writePackage(folder, {
    name: 'sallyport-interceptor',
    description: 'SMART on FHIR access control for FHIR R4 servers on Express, Fastify or Node',
    exports: describeExports({ '.': 'interceptor' }),
  })
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
  const { packages } = readJson('package-lock.json')
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

function describeExports(modules: Readonly<Record<string, string>>): object {
  const files = Object.entries(modules).map(([name, module]) => {
    const file = `./src/${module}/index`
    return [name, { types: `${file}.d.ts`, default: `${file}.js` }]
  })
  return { ...Object.fromEntries(files), './package.json': './package.json' }
}

function writePackage(
  folder: string,
  { name, description, ...more }: Readonly<Record<string, unknown>>,
): void {
  for (const path of globSync('**/*.md', { cwd: folder })) adaptPage(join(folder, path))
  const repository = values.repository && { type: 'git', url: `git+${values.repository}.git` }
  const common = { version, description, license, repository, type, engines }
  writeJson(join(folder, 'package.json'), { name, ...common, ...more })
}

/** A link to a file that the package does not contain becomes its text. */
function adaptPage(file: string): void {
  const page = readFileSync(file, 'utf8')
  const adapted = page.replace(/(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)#]*)[^)]*\)/g, (link, text, path) =>
    existsSync(join(dirname(file), path)) ? link : text,
  )
  writeFileSync(file, adapted)
}
