/**
 * `npm test`: runs the tests file by file in processes of their own, and ends with `N passed, N failed`. Takes files or
 * folders (`npm test -- src/scope`) `--name <pattern>` and `--timeout <seconds>` for a file. What needs a database or a browser gets a real one
 * (test/support/global-setup.ts).
 */
import { globSync, readFileSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, relative, resolve } from 'node:path'
import { run } from 'node:test'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { report } from './test-report.ts'

const ROOT = resolve(import.meta.dirname, '..')
const FOLDERS = ['src', 'sample-patients', 'test', 'scripts', 'examples']

function filesOf(path: string): readonly string[] {
  const whole = resolve(path)
  const stats = statSync(whole, { throwIfNoEntry: false })
  if (!stats) return []
  return stats.isFile() ? [whole] : globSync('**/*.test.ts', { cwd: whole }).map(name => resolve(whole, name))
}

/** Flows in a browser take longest: they begin, so that nothing waits for them at the end. */
function longestFirst(a: string, b: string): number {
  const isFlow = (file: string): number => Number(relative(ROOT, file).startsWith('test/'))
  return isFlow(b) - isFlow(a) || (a < b ? -1 : 1)
}

/** The text of a test, and of the helpers beside it (`testing/`) that it imports. */
function textsOf(file: string): readonly string[] {
  const text = readFileSync(file, 'utf8')
  const helpers = [...text.matchAll(/^(?:import .*|\}) from '(\.[^']*\/testing\/[^']+)'/gm)].map(
    ([, path = '']) => path,
  )
  return [text, ...helpers.map(path => readFileSync(resolve(dirname(file), path), 'utf8'))]
}

/** Which real things the files use, told by what they import. */
function needsOf(files: readonly string[]): string {
  const texts = files.flatMap(textsOf)
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
    timeout: { type: 'string', default: '300' },
    verbose: { type: 'boolean', default: false },
  },
})
const paths = positionals.length > 0 ? positionals : FOLDERS.map(name => resolve(ROOT, name))
const files = [...new Set(paths.flatMap(filesOf))].sort(longestFirst)

if (files.length === 0) {
  process.stderr.write(`Cannot run tests: no *.test.ts in ${paths.join(', ')}\n`)
  process.exit(1)
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
process.env.TEST_NEEDS = needsOf(files)
process.env.TEST_FILE_LIMIT = values.timeout
// Every file is a process that loads most of the house again.
process.env.NODE_COMPILE_CACHE ??= resolve(ROOT, 'node_modules/.cache/sallyport')

const options = {
  files,
  cwd: ROOT,
  // One more than can run at once: flows wait for a browser half of their time.
  concurrency: Math.min(4, availableParallelism() + 1),
  execArgv: [`--import=${pathToFileURL(resolve(ROOT, 'test/support/file-limit.ts'))}`],
  // Not yet in the types of Node.
  globalSetupPath: resolve(ROOT, 'test/support/global-setup.ts'),
  ...(values.name === undefined ? {} : { testNamePatterns: [new RegExp(values.name)] }),
}
const { passed, failed } = await report(run(options), {
  verbose: values.verbose,
  nameOf: file => relative(ROOT, file),
  write: text => process.stdout.write(text),
})
process.stdout.write(`${passed} passed, ${failed} failed\n`)
process.exitCode = failed > 0 || passed === 0 ? 1 : 0
