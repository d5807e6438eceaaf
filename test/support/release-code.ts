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
  const { stdout, status } = spawnSync(
    'git',
    ['log', '--format=%H %s', '--extended-regexp', '--grep=^release: [0-9]', '-2'],
    { cwd: ROOT, encoding: 'utf8' },
  )
  const head = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).stdout.trim()
  const releases = status === 0 ? stdout.split('\n') : []
  for (const line of releases) {
    const [, commit = '', version = ''] = /^(\w+) release: (\S+)$/.exec(line) ?? []
    if (commit !== '' && commit !== head) return { version, commit }
  }
  return undefined
}

/** The code of a release in a new folder, with the packages of its lock file. Its `main.ts`. */
export function checkOut({ version, commit }: Release, folder: string): string {
  mkdirSync(folder, { recursive: true })
  const archive = execFileSync('git', ['archive', commit], { cwd: ROOT, maxBuffer: 1 << 30 })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'))
  const manifest = { name: 'sallyport', version, ...pinDependencies(lock) }
  const project = {
    'package.json': JSON.stringify(manifest),
    'package-lock.json': JSON.stringify(makeShrinkwrap(manifest, lock)),
  }
  symlinkSync(installProject(`release-${version}`, project), join(folder, 'node_modules'))
  return join(folder, 'src/cli/main.ts')
}
