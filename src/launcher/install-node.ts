import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

interface Pinned {
  readonly version: string
  readonly integrity: string
}

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
    return fill(cached, { name, ...pinned }) ? { folder } : 'npm failed'
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Under another name and then renamed: another process never sees half of it. */
function fill(cached: string, node: Pinned & { readonly name: string }): boolean {
  const work = mkdtempSync(`${cached}-`)
  try {
    writeProject(work, node)
    if (!runNpm(work)) return false
    renameSync(work, cached)
  } catch (error) {
    // Another process may have filled it in the meantime.
    if (!existsSync(cached)) throw error
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
  return true
}

function writeProject(
  folder: string,
  { name, version, integrity }: Pinned & { readonly name: string },
): void {
  const project = { private: true, dependencies: { [name]: version } }
  const lock = {
    lockfileVersion: 3,
    packages: { '': project, [`node_modules/${name}`]: { version, integrity } },
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(project))
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock))
}

function runNpm(folder: string): boolean {
  const quiet = ['--no-audit', '--no-fund', '--no-progress', '--no-update-notifier', '--loglevel=error']
  const { status } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-bin-links', ...quiet], {
    cwd: folder,
    // Standard output belongs to the command.
    stdio: ['ignore', 2, 2],
    env: keepSources(process.env),
    shell: process.platform === 'win32',
    windowsHide: true,
  })
  return status === 0
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
  return JSON.parse(readFileSync(new URL('nodes.json', import.meta.url), 'utf8'))[name]
}
