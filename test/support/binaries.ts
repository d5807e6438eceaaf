import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { cacheFolder } from './user-cache.ts'

const BINARIES = resolve(import.meta.dirname, '../binaries')

/** The texts of both files. */
interface Project {
  readonly 'package.json': string
  readonly 'package-lock.json': string
}

/** The folder of a package that `npm ci` installs from `test/binaries/<name>`. */
export function installBinaries(name: 'chromium' | 'postgres', packageName: string): string {
  const read = (file: keyof Project) => readFileSync(join(BINARIES, name, file), 'utf8')
  const project = { 'package.json': read('package.json'), 'package-lock.json': read('package-lock.json') }
  return join(installProject(name, project, [packageName]), packageName)
}

/**
 * The `node_modules` of a project. The lock file pins the version and integrity of every package; its hash is part of the
 * folder's name, so a new version gets a new folder. Once installed, no network is needed. npm succeeds without an optional package
 * that it could not fetch or that does not exist for this machine: `needed` names those that must be there.
 */
export function installProject(name: string, project: Project, needed: readonly string[] = []): string {
  const lock = createHash('sha256').update(project['package-lock.json']).digest('hex')
  const folder = cacheFolder(`${name}-${process.platform}-${process.arch}-${lock.slice(0, 12)}`, work => {
    process.stderr.write(`Installing ${name} for the tests (once)\n`)
    for (const [file, text] of Object.entries(project)) writeFileSync(join(work, file), text)
    const { status, error, stderr } = spawnSync(
      'npm',
      ['ci', '--ignore-scripts', '--no-progress', '--prefer-offline'],
      { cwd: work, encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'] },
    )
    const missing = needed.filter(it => !existsSync(join(work, 'node_modules', it, 'package.json')))
    if (status !== 0 || missing.length > 0)
      throw new Error(`Cannot install ${name} for the tests\n${error?.message ?? stderr}`)
  })
  return join(folder, 'node_modules')
}
