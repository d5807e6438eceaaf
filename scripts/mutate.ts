/**
 * `npm run mutate`: changes the code that decides about requests, one place at a time, and checks that a test fails. The
 * quickest tests run first. The command fails if a mutant survives that docs/internal/mutants.md does not list, or if a
 * listed mutant no longer survives. `npm run mutate -- src/smart` takes a module or a file; `--quick` leaves out the tests
 * of whole servers. `npm run check` does not run it.
 */
import { globSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { globalSetup, globalTeardown } from '../test/support/global-setup.ts'
import { readImportGraph } from './mutate/import-graph.ts'
import { findMutants, type Mutant } from './mutate/mutants.ts'
import { type Batch, type Result, tryAll } from './mutate/try-all.ts'

const ROOT = resolve(import.meta.dirname, '..')
const LIST = 'docs/internal/mutants.md'
const BATCH = 80
const QUICK_ONLY = process.argv.includes('--quick')

/**
 * The modules that decide and the parts of the FHIR API that call them; the parsers of requests, references and
 * compartments; the search parameters of granular scopes; the translation of access filters to SQL and to searches of an
 * upstream server.
 */
const DECIDING = [
  'src/{smart,jwt,interceptor}/**/*.ts',
  'src/fhir/{compartment,interaction,operations,parse-*,reference,request}.ts',
  'src/fhir/search/{matches,parse-clause,parse-search}.ts',
  'src/fhir-api/http/{authenticate,respond,fhir-api,record}.ts',
  'src/fhir-api/access/*.ts',
  'src/fhir-api/paging.ts',
  'src/backends/sqlite/search/planner/access-condition.ts',
  'src/backends/upstream/{access,membership}.ts',
  'src/backends/upstream/search/{known-pages,narrow,paging}.ts',
]

/** Tests of modules, which take less than two seconds each. */
const QUICK = [
  'src/{smart,fhir,jwt,interceptor}/**/*.test.ts',
  'src/cli/policy-file.test.ts',
  'src/fhir-api/{access/*,paging}.test.ts',
  'src/backends/upstream/search/{known-pages,named-patients,narrow,paging}.test.ts',
]

/**
 * Tests of whole servers run only for unlisted mutants that survive the quick tests. They run in this process as far as
 * possible: `try-all.ts` cannot tell a second process that is slow from one that never answers.
 */
const SLOW = [
  'src/{fhir-api,audit}/**/*.test.ts',
  'src/backends/sqlite/{conformance,search/planner/access-condition,search/paging}.test.ts',
  'src/backends/upstream/hostile-*.test.ts',
  'src/backends/upstream/{expand-panels,membership,search/*}.test.ts',
  'test/{audit,oracles,policy,attacks*}.test.ts',
]

const findTests = (patterns: readonly string[]) =>
  patterns.flatMap(pattern => globSync(pattern, { cwd: ROOT }).sort())
// The vectors are not a test file.
const quick = ['vectors', ...findTests(QUICK)]
const tests = [...new Set([...quick, ...findTests(SLOW)])]
const graph = readImportGraph(ROOT, ['src/interceptor/index.ts', ...tests.filter(test => test !== 'vectors')])

function readSource(file: string): string {
  return readFileSync(resolve(ROOT, file), 'utf8')
}

// An index re-exports, except that of `jwt`, which is the whole module.
const EXCLUDED = /\.test\.ts$|\/testing\/|(?<!\/jwt)\/index\.ts$/

function findFiles(paths: readonly string[]): readonly string[] {
  const files = DECIDING.flatMap(pattern => globSync(pattern, { cwd: ROOT }).sort()).filter(
    file => !EXCLUDED.test(file),
  )
  return paths.length === 0 ? files : files.filter(file => paths.some(path => file.startsWith(path)))
}

function createBatches(file: string, listed: readonly string[]): readonly Batch[] {
  const mutants = findMutants(file, readSource(file))
  const isListed = (mutant: Mutant) => listed.includes(formatName(mutant))
  const ordered = tests.toSorted((a, b) => distance(a, file) - distance(b, file))
  const near = ordered.filter(test => distance(test, file) < FAR)
  const others = mutants.filter(mutant => !isListed(mutant))
  return [
    ...splitBatches(others, QUICK_ONLY ? near : ordered),
    ...splitBatches(mutants.filter(isListed), near),
  ]
}

function splitBatches(mutants: readonly Mutant[], by: readonly string[]): readonly Batch[] {
  return Array.from({ length: Math.ceil(mutants.length / BATCH) }, (_, at) => ({
    mutants: mutants.slice(at * BATCH, (at + 1) * BATCH),
    tests: by,
  }))
}

const FAR = 4

/** Orders tests: those of the file, then of its folder, then the quick ones, then those of the parent folder, then the rest. */
function distance(test: string, file: string): number {
  if (test === file.replace(/\.ts$/, '.test.ts')) return 0
  if (dirname(test) === dirname(file)) return 1
  if (quick.includes(test)) return 2
  return test.startsWith('src/interceptor/') && dirname(test) === dirname(dirname(file)) ? 3 : FAR
}

/** A test that fails without a mutant would detect every mutant. */
async function checkTestsPass(): Promise<void> {
  const unchanged = { line: 1, start: 0, end: 0, text: '', was: '' }
  const mutants = ['src/smart/scope.ts', 'src/fhir/interaction.ts'].map(file => ({ ...unchanged, file }))
  await tryAll([{ mutants, tests: QUICK_ONLY ? quick : tests }], graph, ({ mutant, by, why }) => {
    if (by !== undefined)
      throw new Error(`Cannot mutate ${mutant.file}: ${by} fails without a mutant: ${why}`)
  })
}

/** Names a mutant by its line, not its number, so that the list stays valid when code is added above. Equal lines are counted. */
function formatName({ file, was, text, start }: Mutant): string {
  const source = readSource(file)
  const from = source.lastIndexOf('\n', start) + 1
  const line = source.slice(from, source.indexOf('\n', start)).trim()
  const nth = source.slice(from, start).split(was).length
  const alike =
    source
      .slice(0, from)
      .split('\n')
      .filter(it => it.trim() === line).length + 1
  const which = `${file}: \`${was.replaceAll(/\s+/g, ' ')}\`${nth > 1 ? ` (${nth})` : ''}`
  return `${which} to \`${text}\` in \`${line}\`${alike > 1 ? ` (${alike})` : ''}`
}

/** The first column of the table. */
function readListed(files: readonly string[]): readonly string[] {
  return readSource(LIST)
    .split('\n')
    .flatMap(
      line =>
        /^\| (src\/.*`(?: \(\d+\))?) \| [^`|]*(?:`[^`]*`[^`|]*)*\|$/.exec(
          line.replaceAll('\\|', '\0'),
        )?.[1] ?? [],
    )
    .map(name => name.replaceAll('\0', '|'))
    .filter(name => files.some(file => name.startsWith(`${file}:`)))
}

const began = performance.now()
const files = findFiles(process.argv.slice(2).filter(it => !it.startsWith('--')))
const listed = readListed(files)
const batches = files.flatMap(file => createBatches(file, listed))
const count = batches.reduce((sum, { mutants }) => sum + mutants.length, 0)
const results: Result[] = []
process.env.TEST_NEEDS = QUICK_ONLY ? '' : 'postgres,browser'
await globalSetup()
await checkTestsPass()
await tryAll(batches, graph, result => {
  results.push(result)
  if (result.by === undefined) process.stderr.write(`\rSurvived: ${formatName(result.mutant)}\n`)
  process.stderr.write(`\r${results.length} of ${count} tried `)
})
process.stderr.write('\n')
await globalTeardown()

const survivors = new Set(
  results.filter(({ by }) => by === undefined).map(({ mutant }) => formatName(mutant)),
)
const unlisted = [...survivors].filter(name => !listed.includes(name)).sort()
const stale = listed.filter(name => !survivors.has(name))
for (const [module, tried] of Map.groupBy(results, ({ mutant }) => mutant.file.split('/', 2).join('/')))
  process.stdout.write(
    `${module.padEnd(18)} ${tried.length} mutants, ${tried.filter(({ by }) => by !== undefined).length} detected\n`,
  )
for (const name of stale) process.stdout.write(`Listed, but detected or gone: ${name}\n`)
for (const name of unlisted) process.stdout.write(`Survived: ${name}\n`)
process.stdout.write(
  `${results.length} mutants, ${results.filter(({ by }) => by !== undefined).length} detected, ${survivors.size - unlisted.length} listed, ` +
    `${unlisted.length} unlisted survivors, in ${Math.round((performance.now() - began) / 60_000)} min\n`,
)
process.exitCode = unlisted.length > 0 || stale.length > 0 ? 1 : 0
