import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { makeShrinkwrap, pinDependencies } from '../../scripts/build/shrinkwrap.ts'
import { installProject } from './binaries.ts'

const ROOT = resolve(import.meta.dirname, '../..')

/** A release in the history of this clone. */
export interface Release {
  readonly version: string
  readonly commit: string
}

/** The last release before this commit. Undefined without history, as in a shallow clone. */
export function findLastRelease(): Release | undefined {
  const head = readGit('rev-parse', 'HEAD')
  return listReleases().find(({ commit }) => commit !== head)
}

/** A commit by a name that git knows (a tag, a branch, a part of its hash) or by the version that it released. */
export function findCommit(name: string): string | undefined {
  return (
    readGit('rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`) ||
    listReleases().find(({ version }) => version === name)?.commit
  )
}

/** The newest first. */
function listReleases(): readonly Release[] {
  const log = readGit('log', '--format=%H %s', '--extended-regexp', '--grep=^release: [0-9]')
  return [...log.matchAll(/^(\w+) release: (\S+)$/gm)].map(([, commit = '', version = '']) => ({
    version,
    commit,
  }))
}

/** Empty if git refuses. */
function readGit(...args: readonly string[]): string {
  const { stdout, status } = spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' })
  return status === 0 ? stdout.trim() : ''
}

/** The code of a release in a new folder, with the packages of its lock file. Its `main.ts`. */
export function checkOut({ version, commit }: Release, folder: string): string {
  extractCommit(commit, folder)
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'))
  const manifest = { name: 'sallyport', version, ...pinDependencies(lock) }
  const project = {
    'package.json': JSON.stringify(manifest),
    'package-lock.json': JSON.stringify(makeShrinkwrap(manifest, lock)),
  }
  symlinkSync(installProject(`release-${version}`, project), join(folder, 'node_modules'))
  return join(folder, 'src/cli/main.ts')
}

/** Writes the files of a commit to a new folder. */
export function extractCommit(commit: string, folder: string): void {
  mkdirSync(folder, { recursive: true })
  const archive = execFileSync('git', ['archive', commit], { cwd: ROOT, maxBuffer: 1 << 30 })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
}
