/**
 * `npm run test:package [-- --short]`: builds and packs what is published, installs it as a person would (Node 20, an empty home, a folder with a
 * space in its name, outside of the clone), and runs the tests of the package and the journeys with it: the same files that test the clone
 * otherwise, because `TEST_PROGRAM` names the program (test/support/program.ts). `--short` leaves out the commands of the guides, which
 * take as long as a third of the rest, and upgrades of older releases: CI runs these with the clone, and a release with the package.
 */
import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { installPackage, packAll } from './package/install.ts'
import { PACKAGE_TESTS } from './slow-tests.ts'

const ROOT = resolve(import.meta.dirname, '..')

const GUIDES = 'test/journeys/guides.test.ts'
const isShort = process.argv.includes('--short')
/** What runs with the installed program. */
const FILES = [
  ...PACKAGE_TESTS,
  'test/releases.test.ts',
  ...globSync('test/journeys/*.test.ts', { cwd: ROOT }),
].filter(file => !isShort || file !== GUIDES)
if (isShort)
  process.stderr.write(
    'NOT RUN: the commands of the guides and upgrades of older releases with the package: npm run test:package runs them\n',
  )

const folder = mkdtempSync(join(tmpdir(), 'sallyport package-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
const { program } = installPackage(folder, packAll(folder))
const env = {
  ...process.env,
  TEST_PROGRAM: JSON.stringify(program),
  TEST_PACKAGES: folder,
  ...(isShort && { TEST_SHORT: 'true' }),
}
// They wait for the processes that they start most of the time: several at once.
const args = [join(ROOT, 'scripts/test.ts'), '--apart', '--timeout', '900', ...FILES]
process.exitCode = spawnSync(process.execPath, args, { cwd: ROOT, env, stdio: 'inherit' }).status ?? 1
