/**
 * `npm run mutate`: changes the scope, consent and interceptor rooms in one place at a time and looks whether a test
 * notices: the vectors first, which are quick, then the tests of the rooms. Survivors that docs/mutants.md does not list
 * fail it. `npm run mutate -- src/consent` takes one room or file. Not among the ordinary checks: it takes long.
 */
import { spawn } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type Mutant, mutantsOf } from './mutate/mutants.ts'

const ROOT = resolve(import.meta.dirname, '..')
const BATCH = 60
const STALLED_MS = 20_000
const TEST_MS = 120_000

/** Tests that need no process of their own. */
const QUICK = [
  'src/scope/*.test.ts',
  'src/consent/**/*.test.ts',
  'src/cli/policy-file.test.ts',
  'src/interceptor/explain*.test.ts',
  'src/interceptor/decision/*.test.ts',
]

/** The tests that look at a file, besides those of its own folder. */
const TESTS: readonly (readonly [path: string, tests: readonly string[]])[] = [
  ['src/interceptor/host/', ['src/interceptor/host/*.test.ts']],
  ['src/interceptor/express.ts', ['src/interceptor/host/*.test.ts']],
  ['src/interceptor/fastify.ts', ['src/interceptor/host/*.test.ts']],
  ['src/interceptor/token/', ['src/interceptor/token/*.test.ts', 'src/interceptor/*.test.ts']],
  ['src/interceptor/', ['src/interceptor/decision/*.test.ts', 'src/interceptor/*.test.ts']],
  ['src/consent/rights/', ['src/consent/**/*.test.ts', 'src/cli/policy-file.test.ts']],
  ['src/consent/', ['src/consent/**/*.test.ts', 'src/interceptor/decision/*.test.ts']],
  ['src/scope/', ['src/scope/*.test.ts']],
]

function filesIn(paths: readonly string[]): readonly string[] {
  const files = globSync('src/{scope,consent,interceptor}/**/*.ts', { cwd: ROOT })
    // A hint tells people why, and decides nothing.
    .filter(file => !/\.test\.ts$|\/testing\/|\/index\.ts$|\/hint\.ts$/.test(file))
    .sort()
  return paths.length === 0 ? files : files.filter(file => paths.some(path => file.startsWith(path)))
}

/** Those that the vectors do not notice. */
async function tryVectors(mutants: readonly Mutant[]): Promise<readonly Mutant[]> {
  const left: Mutant[] = []
  for (let at = 0; at < mutants.length; at += BATCH) {
    const batch = mutants.slice(at, at + BATCH)
    let first = 0
    while (first < batch.length) first = await tryBatch(batch, first, left)
    process.stderr.write(
      `\r${Math.min(at + BATCH, mutants.length)} of ${mutants.length} tried, ${left.length} left `,
    )
  }
  process.stderr.write('\n')
  return left
}

/** Tries from `first` on, and tells where to go on: a mutant that runs for ever is noticed. */
function tryBatch(mutants: readonly Mutant[], first: number, left: Mutant[]): Promise<number> {
  const worker = new Worker(new URL('mutate/try-vectors.ts', import.meta.url), {
    workerData: { mutants, first, tests: QUICK.flatMap(pattern => globSync(pattern, { cwd: ROOT })) },
  })
  return new Promise((done, fail) => {
    let begun = first
    const end = (next: number) => void worker.terminate().then(() => done(next), fail)
    let stall = setTimeout(() => end(begun + 1), STALLED_MS)
    worker.on('error', () => end(begun + 1))
    worker.on('message', message => {
      clearTimeout(stall)
      stall = setTimeout(() => end(begun + 1), STALLED_MS)
      if (message.begun !== undefined) begun = message.begun
      const mutant = mutants[message.tried]
      if (mutant && !message.noticed) left.push(mutant)
      if (!message.done) return
      clearTimeout(stall)
      end(mutants.length)
    })
  })
}

/** Tests that fail by themselves would notice everything. */
async function needSound(): Promise<void> {
  for (const [file] of TESTS)
    if (await isNoticed({ file, line: 1, start: 0, end: 0, text: '', was: '' }))
      throw new Error(`Cannot mutate ${file}: its tests fail without a mutant`)
}

/** Whether a test of the rooms notices a mutant. */
function isNoticed(mutant: Mutant): Promise<boolean> {
  const [, patterns = []] = TESTS.find(([path]) => mutant.file.startsWith(path)) ?? []
  const tests = patterns.flatMap(pattern => globSync(pattern, { cwd: ROOT }))
  const child = spawn(
    process.execPath,
    [
      '--import',
      resolve(ROOT, 'scripts/mutate/run-tests.ts'),
      '--test',
      '--test-isolation=none',
      ...new Set(tests),
    ],
    { cwd: ROOT, env: { ...process.env, MUTANT: JSON.stringify(mutant) }, stdio: 'ignore', timeout: TEST_MS },
  )
  return new Promise(done => child.on('exit', code => done(code !== 0)))
}

async function tryTests(mutants: readonly Mutant[]): Promise<readonly Mutant[]> {
  const left: Mutant[] = []
  const queue = [...mutants]
  const work = async () => {
    for (let mutant = queue.shift(); mutant; mutant = queue.shift()) {
      if (!(await isNoticed(mutant))) {
        left.push(mutant)
        process.stderr.write(`\nleft: ${nameOf(mutant)}\n`)
      }
      process.stderr.write(`\r${queue.length} to go, ${left.length} left `)
    }
  }
  await Promise.all(Array.from({ length: Math.max(1, availableParallelism() - 1) }, work))
  process.stderr.write('\n')
  return left.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
}

/** The line itself names a mutant, so that a list of them outlives what is added above it. */
function nameOf({ file, was, text, start }: Mutant): string {
  const source = readFileSync(resolve(ROOT, file), 'utf8')
  const from = source.lastIndexOf('\n', start) + 1
  const line = source.slice(from, source.indexOf('\n', start)).trim()
  return `${file}: \`${was.replaceAll(/\s+/g, ' ')}\` to \`${text}\` in \`${line}\``
}

const mutants = filesIn(process.argv.slice(2)).flatMap(file =>
  mutantsOf(file, readFileSync(resolve(ROOT, file), 'utf8')),
)
await needSound()
const survivors = await tryTests(await tryVectors(mutants))
const listed = readFileSync(resolve(ROOT, 'docs/mutants.md'), 'utf8').replaceAll('\\|', '|')
const news = survivors.map(nameOf).filter(name => !listed.includes(name))
for (const name of news) process.stdout.write(`Survived: ${name}\n`)
process.stdout.write(
  `${mutants.length} mutants, ${mutants.length - survivors.length} noticed, ${survivors.length - news.length} listed, ${news.length} survived\n`,
)
process.exitCode = news.length > 0 ? 1 : 0
