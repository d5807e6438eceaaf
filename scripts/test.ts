/**
 * `npm test`: runs the tests of each module in one process, and ends with `N passed, N failed`. Takes files or folders
 * (`npm test -- src/auth`), `--name <pattern>`, `--apart` for a process of each file, and `--timeout <seconds>` for a file. Without files it leaves out those that take
 * long, unless the run is thorough. Tests that need a database or a browser get a real one (test/support/global-setup.ts).
 */
import { globSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { run } from 'node:test'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { globalSetup, globalTeardown } from '../test/support/global-setup.ts'
import { IS_THOROUGH } from '../test/support/thorough.ts'
import { PACKAGE_TESTS, SLOW_TESTS } from './slow-tests.ts'
import { groupTests, readTexts, type TestGroup, writeEntry } from './test-groups.ts'
import { type Report, report } from './test-report.ts'

const ROOT = resolve(import.meta.dirname, '..')
const FOLDERS = ['src', 'test', 'scripts', 'examples', 'bench']

function findFiles(path: string): readonly string[] {
  const whole = resolve(path)
  const stats = statSync(whole, { throwIfNoEntry: false })
  if (!stats) return []
  return stats.isFile() ? [whole] : globSync('**/*.test.ts', { cwd: whole }).map(name => resolve(whole, name))
}

/** The real services that the files use, by their imports. */
function findNeeds(files: readonly string[]): string {
  const texts = files.flatMap(readTexts)
  const uses = (pattern: RegExp): boolean => texts.some(text => pattern.test(text))
  return [
    ...(uses(/support\/databases\.ts|TEST_POSTGRES_URL/) ? ['postgres'] : []),
    ...(uses(/support\/browser\.ts/) ? ['browser'] : []),
  ].join(',')
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    name: { type: 'string' },
    // It ends a file that hangs. A thorough run shares its cores among more files that take minutes.
    timeout: { type: 'string', default: IS_THOROUGH ? '900' : '300' },
    apart: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
  },
})
const paths = positionals.length > 0 ? positionals : FOLDERS.map(name => resolve(ROOT, name))
const found = [...new Set(paths.flatMap(findFiles))].sort()
const isWhole = positionals.length === 0
const slow = new Set(isWhole && !IS_THOROUGH ? SLOW_TESTS.map(name => resolve(ROOT, name)) : [])
const others = new Set(isWhole ? PACKAGE_TESTS.map(name => resolve(ROOT, name)) : [])
const files = found.filter(file => !slow.has(file) && !others.has(file))

if (files.length === 0) {
  process.stderr.write(`Cannot run tests: no *.test.ts in ${paths.join(', ')}\n`)
  process.exit(1)
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
process.env.TEST_NEEDS = findNeeds(files)
process.env.TEST_FILE_LIMIT = values.timeout
process.env.NODE_COMPILE_CACHE ??= resolve(ROOT, 'node_modules/.cache/sallyport')

const entries = mkdtempSync(join(tmpdir(), 'sallyport-test-groups-'))
process.once('exit', () => rmSync(entries, { recursive: true, force: true }))

function runGroups(groups: readonly TestGroup[]): Promise<Report> {
  const byEntry = new Map(groups.map(group => [writeEntry(group, entries), group]))
  const options = {
    files: [...byEntry.keys()],
    cwd: ROOT,
    // More than can run at once: a flow waits for its browser or database half of its time, and a thorough run has many.
    concurrency: Math.min(5, availableParallelism() + (IS_THOROUGH ? 2 : 1)),
    // Tests leave much garbage that is collected soon: a larger nursery takes less time for it.
    execArgv: [
      '--max-semi-space-size=64',
      ...['error-tracking.ts', 'file-limit.ts'].map(
        name => `--import=${pathToFileURL(resolve(ROOT, 'test/support', name))}`,
      ),
    ],
    ...(values.name === undefined ? {} : { testNamePatterns: [new RegExp(values.name)] }),
  }
  return report(run(options), byEntry, {
    verbose: values.verbose,
    formatName: file => relative(ROOT, file),
    write: text => process.stdout.write(text),
  })
}

function createGroup(file: string): TestGroup {
  return { name: relative(ROOT, file), files: [file] }
}

await globalSetup()
// A pattern of names would match the name of the suite that a group makes of a file.
const isApart = values.apart || values.name !== undefined
const first = await runGroups(isApart ? files.map(createGroup) : groupTests(files))
const again = first.broken.flatMap(group => group.files)
const second =
  again.length === 0 ? { passed: 0, failed: 0, failures: [] } : await runGroups(again.map(createGroup))
await globalTeardown()

const passed = first.passed + second.passed
// A group whose process ended badly has failed, even if each of its files passes alone.
const failed = first.failed + Math.max(second.failed, first.broken.length)
const failures = [...first.failures, ...second.failures]
// A log that was cut to its end still names what failed.
if (failures.length > 0) process.stdout.write(`\nWhat failed:\n${failures.join('')}\n`)
if (slow.size > 0)
  process.stdout.write(
    `${slow.size} files that take long were left out: TEST_THOROUGH=true npm test runs them\n`,
  )
process.stdout.write(`${passed} passed, ${failed} failed\n`)
process.exitCode = failed > 0 || passed === 0 ? 1 : 0
