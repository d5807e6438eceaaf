import type { TestsStream } from 'node:test'
import { inspect, styleText } from 'node:util'

export interface ReportOptions {
  /** Names every test, not only those that fail. */
  readonly verbose: boolean
  readonly nameOf: (file: string) => string
  readonly write: (text: string) => void
}

interface FileCount {
  passed: number
  failed: number
  skipped: number
}

interface Outcome {
  readonly name: string
  readonly nesting: number
  readonly file?: string | undefined
  readonly skip?: string | boolean | undefined
  readonly todo?: string | boolean | undefined
  readonly details: {
    readonly type?: string | undefined
    readonly duration_ms: number
    readonly error?: Error
  }
}

/** One line a file when it is done, every failure in full, and the counts. Suites are not counted, only tests. */
export async function report(
  stream: TestsStream,
  options: ReportOptions,
): Promise<{ passed: number; failed: number }> {
  const files = new Map<string, FileCount>()
  const { nameOf, write } = options

  function countOf(file: string | undefined): FileCount {
    const name = file ?? ''
    const known = files.get(name) ?? { passed: 0, failed: 0, skipped: 0 }
    files.set(name, known)
    return known
  }

  stream.on('test:pass', (test: Outcome) => {
    if (test.details.type === 'suite') return
    const count = countOf(test.file)
    if (test.skip !== undefined) count.skipped += 1
    else count.passed += 1
    if (options.verbose) write(`  ${styleText('green', '✔')} ${test.name}\n`)
  })
  stream.on('test:fail', (test: Outcome) => {
    if (test.details.type === 'suite' && isOfItsTests(test.details.error)) return
    countOf(test.file).failed += 1
    write(failureText(test, nameOf))
  })
  stream.on('test:stdout', ({ message }) => options.verbose && write(message))
  stream.on('test:stderr', ({ message }) => write(message))
  stream.on('test:summary', ({ file, counts, duration_ms: ms }) => {
    if (file === undefined) return
    write(fileText(nameOf(file), { ...counts, failed: counts.tests - counts.passed - counts.skipped }, ms))
  })
  stream.resume()
  await new Promise<void>((resolve, reject) => stream.once('end', resolve).once('error', reject))
  return total(files.values())
}

/** A suite that failed because a test in it did says nothing new. */
function isOfItsTests(error: unknown): boolean {
  return error instanceof Error && 'failureType' in error && error.failureType === 'subtestsFailed'
}

function failureText(test: Outcome, nameOf: ReportOptions['nameOf']): string {
  const error = test.details.error
  const cause = error?.cause ?? error
  const where = test.file === undefined ? '' : ` ${styleText('dim', nameOf(test.file))}`
  const text = [cause, innerOf(cause)]
    .filter(it => it !== undefined)
    .map(stackOf)
    .join('\n')
  return `${styleText('red', '✖')} ${test.name}${where}\n${text.replace(/^/gm, '    ')}\n`
}

/** A property that failed has the assertion inside. */
function innerOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : inspect(error)
}

function fileText(name: string, { passed, failed, skipped }: FileCount, ms: number): string {
  const sign = failed > 0 ? styleText('red', '✖') : styleText('green', '✔')
  const counts = [`${passed} passed`, failed > 0 && `${failed} failed`, skipped > 0 && `${skipped} skipped`]
  return `${sign} ${name} ${styleText('dim', `${counts.filter(Boolean).join(', ')} (${(ms / 1000).toFixed(1)} s)`)}\n`
}

function total(counts: Iterable<FileCount>): { passed: number; failed: number } {
  let passed = 0
  let failed = 0
  for (const count of counts) {
    passed += count.passed
    failed += count.failed
  }
  return { passed, failed }
}
