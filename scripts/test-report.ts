import type { TestsStream } from 'node:test'
import { inspect, styleText } from 'node:util'
import type { TestGroup } from './test-groups.ts'

export interface ReportOptions {
  /** Names every test, not only those that fail. */
  readonly verbose: boolean
  readonly formatName: (file: string) => string
  readonly write: (text: string) => void
}

interface FileCount {
  passed: number
  failed: number
  skipped: number
  todo: number
}

interface Outcome {
  readonly name: string
  readonly nesting: number
  readonly file?: string | undefined
  /** The file that the process runs; missing for the process itself. */
  readonly entryFile?: string | undefined
  readonly skip?: string | boolean | undefined
  readonly todo?: string | boolean | undefined
  readonly details: {
    readonly passed: boolean
    readonly type?: string | undefined
    readonly duration_ms: number
    readonly error?: Error
  }
}

export interface Report {
  readonly passed: number
  readonly failed: number
  /** The failures in full, to be repeated below what other files wrote after them. */
  readonly failures: readonly string[]
  /** Groups whose process crashed, hung or ended with an error. Their tests are not counted. */
  readonly broken: readonly TestGroup[]
}

/** The progress of one process. */
interface Progress {
  readonly group: TestGroup
  /** The tests of the files that are done. */
  readonly done: FileCount[]
  /** The tests of the file that runs. */
  count: FileCount
  broken: boolean
}

/** Writes one line a file when it is done, and every failure in full. Suites are not counted, only tests. */
export async function report(
  stream: TestsStream,
  groups: ReadonlyMap<string, TestGroup>,
  options: ReportOptions,
): Promise<Report> {
  const { formatName, write } = options
  const failures: string[] = []
  const entries = new Map(
    [...groups].map(([entry, group]): [string, Progress] => [
      entry,
      { group, done: [], count: createCount(), broken: false },
    ]),
  )

  function fail(text: string): void {
    write(text)
    failures.push(text)
  }

  function finishFile(progress: Progress, file: string, { details }: Outcome): void {
    write(formatFile(formatName(file), progress.count, details.duration_ms))
    progress.done.push(progress.count)
    progress.count = createCount()
  }

  function finishTest(progress: Progress, test: Outcome): void {
    const isSuite = test.details.type === 'suite'
    if (test.todo !== undefined) {
      progress.count.todo += 1
      if (test.details.passed) write(`  ${test.name} passes: it is no longer to do\n`)
    } else if (!test.details.passed && !(isSuite && isCausedByTests(test.details.error))) {
      progress.count.failed += 1
      fail(formatFailure(test, formatName))
    } else if (!isSuite) {
      if (test.skip === undefined) progress.count.passed += 1
      else progress.count.skipped += 1
      if (options.verbose && test.details.passed) write(`  ${styleText('green', '✔')} ${test.name}\n`)
    }
    const { files } = progress.group
    if (isSuite && test.nesting === 0 && files.length > 1 && files.includes(test.name))
      finishFile(progress, test.name, test)
  }

  function finishProcess(progress: Progress, test: Outcome): void {
    const { files } = progress.group
    const onlyTestsFailed = test.details.passed || isCausedByTests(test.details.error)
    if (files.length > 1) {
      if (onlyTestsFailed && progress.done.length === files.length) return
      progress.broken = true
      fail(formatBroken(progress.group, test, formatName))
      return
    }
    if (!onlyTestsFailed) {
      progress.count.failed += 1
      fail(formatFailure(test, formatName))
    }
    finishFile(progress, test.name, test)
  }

  // Comes at once; test:pass and test:fail wait for all processes that began before.
  stream.on('test:complete', (test: Outcome) => {
    const progress = entries.get(test.entryFile ?? test.name)
    if (!progress) throw new Error(`Cannot report ${test.name}: no such process was started`)
    if (test.entryFile === undefined) finishProcess(progress, test)
    else finishTest(progress, test)
  })
  stream.on('test:stdout', ({ message }) => options.verbose && write(message))
  stream.on('test:stderr', ({ message }) => write(message))
  stream.resume()
  await new Promise<void>((resolve, reject) => stream.once('end', resolve).once('error', reject))
  return { ...count([...entries.values()]), failures }
}

function createCount(): FileCount {
  return { passed: 0, failed: 0, skipped: 0, todo: 0 }
}

function count(all: readonly Progress[]): Omit<Report, 'failures'> {
  const counts = all.filter(({ broken }) => !broken).flatMap(({ done, count }) => [...done, count])
  return {
    passed: counts.reduce((sum, { passed }) => sum + passed, 0),
    failed: counts.reduce((sum, { failed }) => sum + failed, 0),
    broken: all.filter(({ broken }) => broken).map(({ group }) => group),
  }
}

function formatBroken(
  { name, files }: TestGroup,
  test: Outcome,
  formatName: ReportOptions['formatName'],
): string {
  const error = test.details.error
  const [signal, code] =
    error && 'signal' in error && 'exitCode' in error ? [error.signal, error.exitCode] : []
  const how = signal ? `signal ${signal}` : `exit code ${code}`
  return `${styleText('red', '✖')} The process of ${name} ended with ${how}. Each of its files runs again alone:\n${files.map(file => `    ${formatName(file)}\n`).join('')}`
}

/** The failure of a suite that only repeats the failure of a test in it. */
function isCausedByTests(error: unknown): boolean {
  return error instanceof Error && 'failureType' in error && error.failureType === 'subtestsFailed'
}

function formatFailure(test: Outcome, formatName: ReportOptions['formatName']): string {
  const error = test.details.error
  const cause = error?.cause ?? error
  const where = test.file === undefined ? '' : ` ${styleText('dim', formatName(test.file))}`
  const text = [cause, findInner(cause)]
    .filter(it => it !== undefined)
    .map(formatStack)
    .join('\n')
  return `${styleText('red', '✖')} ${test.name}${where}\n${text.replace(/^/gm, '    ')}\n`
}

/** The error of a failed property holds the assertion as its cause. */
function findInner(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined
}

function formatStack(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : inspect(error)
}

function formatFile(name: string, { passed, failed, skipped, todo }: FileCount, ms: number): string {
  const sign = failed > 0 ? styleText('red', '✖') : styleText('green', '✔')
  const counts = [
    `${passed} passed`,
    failed > 0 && `${failed} failed`,
    skipped > 0 && `${skipped} skipped`,
    todo > 0 && `${todo} to do`,
  ]
  return `${sign} ${name} ${styleText('dim', `${counts.filter(Boolean).join(', ')} (${(ms / 1000).toFixed(1)} s)`)}\n`
}
