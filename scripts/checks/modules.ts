import { dirname } from 'node:path'
import { findCycles, resolveImport } from './cycles.ts'

/** Source files by their path from the root (`src/auth/server.ts`). */
export type Sources = ReadonlyMap<string, string>

interface ModuleRule {
  /** Modules that it may import, by their `index.ts`. */
  readonly imports: readonly string[]
  /** Modules of which it may import types only. */
  readonly importsTypesOf?: readonly string[]
}

/** Every module may import it. */
const GROUND_FLOOR = 'core'

const DOMAIN = ['fhir', 'smart']
const WEB = ['web/ui', 'web/http', 'web/person']
const SHARED = [
  ...DOMAIN,
  'cache',
  'turns',
  'jwt',
  ...WEB,
  'endpoint',
  'store',
  'config',
  'audit-record',
  'audit',
  'app-reasons',
  'proposals',
]
const SERVERS = ['interceptor', 'fhir-api', 'backends/sqlite', 'backends/upstream', 'auth', 'session']

/** Imports go one way: cli, servers, shared modules, domain modules. Servers meet over HTTP only. */
const MODULES: Readonly<Record<string, ModuleRule>> = {
  [GROUND_FLOOR]: { imports: [] },
  fhir: { imports: [] },
  cache: { imports: [] },
  jwt: { imports: ['turns'] },
  'client-token': { imports: ['cache', 'jwt'] },
  turns: { imports: [] },
  smart: { imports: ['fhir'] },
  'web/ui': { imports: [] },
  'web/http': { imports: ['fhir', 'store', 'turns', 'web/ui'] },
  'web/person': { imports: ['fhir', 'web/ui'] },
  endpoint: { imports: ['web/http', 'web/ui'] },
  proposals: { imports: ['store'] },
  mcp: { imports: [...DOMAIN, 'endpoint', 'store', 'fhir-api', 'proposals', 'web/person'] },
  sqlite: { imports: [] },
  store: { imports: ['sqlite'] },
  config: { imports: ['smart', 'store'], importsTypesOf: ['web/ui', 'web/http'] },
  'audit-record': { imports: [...DOMAIN, 'cache'] },
  audit: { imports: [...DOMAIN, 'cache', 'store', 'audit-record'] },
  'fhir-api': { imports: [...DOMAIN, 'turns', ...WEB, 'store', 'audit'] },
  // A library that other FHIR servers mount: it brings no server and no database.
  interceptor: { imports: [...DOMAIN, 'cache', 'jwt', 'client-token', 'turns', 'audit-record'] },
  'backends/sqlite': { imports: [...SHARED, 'sqlite', 'fhir-api'] },
  'backends/upstream': { imports: [...SHARED, 'client-token', 'fhir-api'] },
  import: { imports: [...DOMAIN, 'sqlite', 'fhir-api', 'backends/sqlite'] },
  export: { imports: [...DOMAIN, 'fhir-api', 'backends/sqlite', 'import'] },
  // The first start fills the embedded server with them.
  'sample-patients': { imports: [], importsTypesOf: ['fhir'] },
  'app-reasons': { imports: [] },
  auth: { imports: SHARED },
  session: { imports: SHARED },
  cli: { imports: [...SHARED, ...SERVERS, 'client-token', 'mcp', 'import', 'export', 'sample-patients'] },
  // Runs on an older Node than everything else.
  launcher: { imports: [] },
  // A library for the tests of apps, which starts the launcher.
  'testing-api': { imports: [] },
}

/** They pass the environment to config, or to the Node that runs the rest. */
const ENVIRONMENT_READERS = [
  'src/cli/main.ts',
  'src/launcher/run.ts',
  'src/launcher/install-node.ts',
  'src/testing-api/start.ts',
  'src/testing-api/connect.ts',
  'src/testing-api/hold.ts',
]

const PRINTERS = ['cli', 'launcher', 'testing-api']

interface Import {
  readonly path: string
  readonly typeOnly: boolean
}

const IMPORT = /^\s*(?:import|export)\s+(type\s+)?(?:[^'";]*?\sfrom\s+)?'([^']+)'/gm
const DYNAMIC_IMPORT = /\bimport\('([^']+)'\)/g

function findImports(text: string): readonly Import[] {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '')
  return [
    ...[...code.matchAll(IMPORT)].map(([, type, path = '']) => ({ path, typeOnly: type !== undefined })),
    ...[...code.matchAll(DYNAMIC_IMPORT)].map(([, path = '']) => ({ path, typeOnly: false })),
  ]
}

function findModule(file: string): string | undefined {
  const [, module] = /^src\/((?:(?:backends|web)\/)?[^/]+)\//.exec(file) ?? []
  return module
}

function isTest(file: string): boolean {
  return file.endsWith('.test.ts') || file.includes('/testing/')
}

/** Everything that breaks a rule; nothing when all is well. */
export function findModuleFaults(sources: Sources): readonly string[] {
  const files = [...sources].filter(([file]) => findModule(file) !== undefined)
  return [
    ...files.flatMap(([file, text]) => [
      ...findFileFaults(file, text),
      ...findImports(text).flatMap(found => findImportFaults(file, found)),
      ...findUsageFaults(file, text),
      ...findLabFaults(file, text),
      ...findProviderFaults(file, text),
    ]),
    ...findCycleFaults([...sources]),
    ...findUpwardFaults(files),
    ...findPageFaults(files),
  ]
}

/** The parts of the auth server: each imports only those before it. `server.ts` puts them together. */
const AUTH_PARTS = ['words', 'base', 'users', 'patients', 'oauth', 'pages', 'admin', 'lab']

function findAuthPart(file: string): number {
  return AUTH_PARTS.indexOf(/^src\/auth\/([^/]+)\//.exec(file)?.[1] ?? '')
}

function findUpwardFaults(files: readonly (readonly [file: string, text: string])[]): readonly string[] {
  return files
    .filter(([file]) => !isTest(file) && findAuthPart(file) >= 0)
    .flatMap(([file, text]) =>
      listTargets(file, text)
        .filter(target => findAuthPart(target) > findAuthPart(file))
        .map(target => `${file}: imports ${target}, a later part of the auth server`),
    )
}

/** The pages share `parts` only: what a page shows can be changed without a look at the others. */
function findPageFaults(files: readonly (readonly [file: string, text: string])[]): readonly string[] {
  return files
    .filter(([file]) => !isTest(file) && findAuthPart(file) >= AUTH_PARTS.indexOf('pages'))
    .flatMap(([file, text]) =>
      listTargets(file, text)
        .filter(target => ![undefined, 'parts', findPageFolder(file)].includes(findPageFolder(target)))
        .map(target => `${file}: imports ${target}, another page; what pages share is in pages/parts`),
    )
}

function findPageFolder(file: string): string | undefined {
  return /^src\/auth\/pages\/([^/]+)\//.exec(file)?.[1]
}

function listTargets(file: string, text: string): readonly string[] {
  return findImports(text).flatMap(({ path }) => (path.startsWith('.') ? [resolveImport(file, path)] : []))
}

/** Files and folders that import each other, types included, cannot be read or changed one by one. */
function findCycleFaults(files: readonly (readonly [file: string, text: string])[]): readonly string[] {
  const imports = new Map(
    files.filter(([file]) => !isTest(file)).map(([file, text]) => [file, listTargets(file, text)]),
  )
  return [
    ...findCycles(imports).map(cycle => `import cycle: ${cycle.join(' → ')}`),
    ...listFolders(imports.keys()).flatMap(folder =>
      findCycles(groupByChild(folder, imports))
        .filter(cycle => !cycle.every(child => child.endsWith('.ts')))
        .map(cycle => `${folder}: import cycle: ${cycle.join(' → ')}`),
    ),
  ]
}

/** All folders of `src`, at every level. */
function listFolders(files: Iterable<string>): readonly string[] {
  const folders = new Set<string>()
  for (const file of files)
    for (let folder = dirname(file); folder.startsWith('src/'); folder = dirname(folder)) folders.add(folder)
  return [...folders]
}

/** The imports between the files and folders in a folder. */
function groupByChild(folder: string, imports: ReadonlyMap<string, readonly string[]>) {
  const children = new Map<string, string[]>()
  const findChild = (file: string) =>
    file.startsWith(`${folder}/`) ? file.slice(folder.length + 1).split('/')[0] : undefined
  for (const [file, targets] of imports) {
    const child = findChild(file)
    if (child === undefined) continue
    const others = targets.flatMap(target => findChild(target) ?? []).filter(other => other !== child)
    children.set(child, [...(children.get(child) ?? []), ...others])
  }
  return children
}

function findFileFaults(file: string, text: string): readonly string[] {
  const module = findModule(file)
  return [
    ...(module !== undefined && !(module in MODULES) ? [`${file}: ${module} is not a module`] : []),
    ...(file === `src/${module}/index.ts` && !text.startsWith('/**')
      ? [`${file}: it does not begin with a comment that says what the module does`]
      : []),
  ]
}

function findImportFaults(file: string, { path, typeOnly }: Import): readonly string[] {
  if (!path.startsWith('.')) return []
  const target = resolveImport(file, path)
  const from = findModule(file)
  const to = findModule(target)
  if (from === to) return []
  if (to === undefined) return isTest(file) ? [] : [`${file}: imports ${target}, which is not source code`]
  // Tests of several modules may share a suite.
  if (isTest(file) && isTest(target)) return []
  if (target !== `src/${to}/index.ts`) return [`${file}: imports ${target}, not src/${to}/index.ts`]
  return isTest(file) || mayImport(from, to, typeOnly) ? [] : [`${file}: ${from} may not import ${to}`]
}

function mayImport(from: string | undefined, to: string, typeOnly: boolean): boolean {
  const module = MODULES[from ?? '']
  return (
    module !== undefined &&
    (to === GROUND_FLOOR ||
      module.imports.includes(to) ||
      (typeOnly && (module.importsTypesOf ?? []).includes(to)))
  )
}

/** Work of these functions takes a thread of libuv's pool. The synchronous ones of zlib do not. */
const THREAD_POOL_WORK =
  /import \{(?!(?:\s*\w+Sync,?)+\s*\})[^}]*\} from '(?:node:zlib|@node-rs\/bcrypt)'|promisify\((?:sign|verify|generateKeyPair|scrypt|pbkdf2)\)/

/** A command, not a server. */
const IMPORT_FOLDER = 'src/import/'

/** Only some modules read the environment, or print. CPU work in the thread pool goes through its queue. */
function findUsageFaults(file: string, text: string): readonly string[] {
  if (isTest(file)) return []
  const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
  const module = findModule(file)
  return [
    ...(module !== 'config' && !ENVIRONMENT_READERS.includes(file) && /\bprocess\.env\b/.test(code)
      ? [`${file}: only config reads process.env`]
      : []),
    ...(THREAD_POOL_WORK.test(code) && !code.includes('runInThreadPool(') && !file.startsWith(IMPORT_FOLDER)
      ? [`${file}: work in the thread pool goes through runInThreadPool`]
      : []),
    ...(!PRINTERS.includes(module ?? '') && /\bconsole\.|\bprocess\.(stdout|stderr|exit)\b/.test(code)
      ? [`${file}: only cli prints and exits`]
      : []),
  ]
}

/** Only these know the kinds of sign-in providers. The rest asks for the traits of a provider. */
const PROVIDER_FILES: readonly string[] = ['src/config/providers/', 'src/auth/users/providers/']

function findProviderFaults(file: string, text: string): readonly string[] {
  if (isTest(file) || PROVIDER_FILES.some(path => file.startsWith(path))) return []
  const [found] = /(?:[!=]==|\bcase) '(?:oidc|ldap)'/.exec(text) ?? []
  return found === undefined
    ? []
    : [`${file}: decides by the kind of a provider (${found}); use describeProvider of config`]
}

/** The lab with its simulated errors is an extension (`auth/oauth/hooks.ts`): only these files know of it. */
const LAB_FILES: readonly string[] = [
  'src/auth/lab/',
  'src/auth/words/links.ts',
  'src/auth/server.ts',
  'src/cli/commands/developer.ts',
  'src/config/',
  'src/interceptor/simulate.ts',
  'src/testing-api/',
]

const LAB_IMPORT = "from './simulate.ts'"

/** Also in comments and in parts of names: `hasLab`, `SMART_LAB`. */
function findLabFaults(file: string, text: string): readonly string[] {
  if (isTest(file) || LAB_FILES.some(path => file.startsWith(path))) return []
  const words = `${file} ${text.replace(LAB_IMPORT, '')}`.match(/[A-Z]?[a-z]+|[A-Z]+/g) ?? []
  const found = words.find(word => /^(?:labs?|simulat\w*)$/i.test(word))
  return found === undefined ? [] : [`${file}: mentions the lab or its simulated errors (${found})`]
}
