import { type StdioOptions, spawnSync } from 'node:child_process'
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { readOwnFile } from '../core/index.ts'

interface Pinned {
  readonly version: string
  readonly integrity: string
}

type PinnedNode = Pinned & { readonly name: string }

const NPM_CACHE = 'npm-cache'

/** How long a registry may take to answer a small question. */
const PATIENCE_MS = 8_000

/** The variable that moves the cache of the user. */
const CACHE_VARIABLE = process.platform === 'win32' ? 'LOCALAPPDATA' : 'XDG_CACHE_HOME'

/**
 * The folder of a package that contains a Node, in the user's cache. At the first use npm puts it there, with the registry and proxy of
 * the user, and compares it with the checksum that the build wrote. It is no dependency of ours: npm would link its command `node` into
 * the project that installs us, in front of the project's own. A failure is a text.
 */
export function installNode(name: string): { readonly folder: string } | string {
  const pinned = readPinned(name)
  const cached = join(findCache(), `${name}-${pinned.version}`)
  const folder = join(cached, 'node_modules', name)
  if (existsSync(folder)) return { folder }
  process.stderr.write(
    `Sallyport needs a newer Node: installing ${name}@${pinned.version} in ${cached}, once.\n`,
  )
  try {
    mkdirSync(dirname(cached), { recursive: true })
    return fill(cached, { name, ...pinned }) ?? { folder }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return `${reason}. ${CACHE_VARIABLE} sets another folder for it`
  }
}

/** Under another name and then renamed: another process never sees half of it. Returns why npm failed. */
function fill(cached: string, node: PinnedNode): string | undefined {
  const work = mkdtempSync(`${cached}-`)
  try {
    writeProject(work, node)
    const failure = download(work, node)
    if (failure !== undefined) return failure
    rmSync(join(work, NPM_CACHE), { recursive: true, force: true })
    // The cache may be one of several users. Node is no secret, and only its owner can change it.
    chmodSync(work, 0o755)
    renameSync(work, cached)
  } catch (error) {
    // Another process may have filled it in the meantime.
    if (!existsSync(cached)) throw error
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
  return undefined
}

/** npm repeats a download for more than a minute if there is no network: a short question comes first. */
function download(folder: string, { name, version }: PinnedNode): string | undefined {
  const install = ['ci', '--ignore-scripts', '--no-bin-links']
  if (runNpm(folder, [...install, '--offline'], { shows: 'nothing' })) return undefined
  const ask = ['view', `${name}@${version}`, 'version', '--fetch-retries=0']
  if (!runNpm(folder, ask, { shows: 'errors', timeout: PATIENCE_MS })) return 'npm cannot reach its registry'
  return runNpm(folder, install, { shows: 'all' }) ? undefined : 'npm failed'
}

function writeProject(folder: string, { name, version, integrity }: PinnedNode): void {
  const project = { private: true, dependencies: { [name]: version } }
  const lock = {
    lockfileVersion: 3,
    packages: { '': project, [`node_modules/${name}`]: { version, integrity } },
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(project))
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock))
}

interface NpmOptions {
  readonly shows: 'nothing' | 'errors' | 'all'
  readonly timeout?: number
}

/** Standard output belongs to the command. */
const OUTPUTS = {
  nothing: 'ignore',
  errors: ['ignore', 'ignore', 2],
  all: ['ignore', 2, 2],
} satisfies Record<NpmOptions['shows'], StdioOptions>

function runNpm(folder: string, args: readonly string[], { shows, timeout }: NpmOptions): boolean {
  const quiet = ['--no-audit', '--no-fund', '--no-progress', '--no-update-notifier', '--loglevel=error']
  const { status } = spawnSync('npm', [...args, ...quiet], {
    cwd: folder,
    stdio: OUTPUTS[shows],
    timeout,
    env: { ...findNpmCache(folder), ...keepSources(process.env) },
    shell: process.platform === 'win32',
    windowsHide: true,
  })
  return status === 0
}

/** npm keeps downloads in the home of the user: a user whose home cannot be written gets another folder, which is then removed. */
function findNpmCache(folder: string): NodeJS.ProcessEnv {
  try {
    accessSync(join(homedir(), '/'), constants.W_OK)
    return {}
  } catch {
    return { npm_config_cache: join(folder, NPM_CACHE) }
  }
}

/** npm passes its options on: where packages come from also holds here, which part of the project it works on does not. */
function keepSources(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const ofProject =
    /^npm_config_(workspaces?|include_workspace_root|global|location|dry_run|prefix|local_prefix)$/i
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ofProject.test(name)))
}

function findCache(): string {
  const { XDG_CACHE_HOME, LOCALAPPDATA } = process.env
  return join(XDG_CACHE_HOME || LOCALAPPDATA || join(homedir(), '.cache'), 'sallyport')
}

/** The file is made by scripts/build.ts. */
function readPinned(name: string): Pinned {
  return JSON.parse(readOwnFile('src/launcher/nodes.json'))[name]
}
