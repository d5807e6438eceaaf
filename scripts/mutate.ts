/**
 * `npm run mutate`: changes what decides about a request in one place at a time, and looks whether a test notices: the
 * quickest that could are tried first. Survivors that docs/internal/mutants.md does not list fail it, and so does a line of the
 * list that no longer survives. `npm run mutate -- src/consent` takes one room or file, `--quick` leaves out tests of whole
 * servers. Not among the ordinary checks.
 */
import { globSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { importGraph } from './mutate/import-graph.ts'
import { type Mutant, mutantsOf } from './mutate/mutants.ts'
import { type Batch, type Result, tryAll } from './mutate/try-all.ts'

const ROOT = resolve(import.meta.dirname, '..')
const LIST = 'docs/internal/mutants.md'
const BATCH = 80
const QUICKLY = process.argv.includes('--quick')

/**
 * The modules that decide, and the FHIR API that asks them; how a request, a reference and a compartment are read; and
 * how access filters become SQL.
 */
const DECIDING = [
  'src/{smart,interceptor}/**/*.ts',
  'src/fhir-api/http/{authenticate,respond,read-request,find-interaction,record}.ts',
  'src/fhir/{authorization,compartment,interaction,other-patients,params,parse-*,reference,request,request-path}.ts',
  'src/fhir-api/access/*.ts',
  'src/fhir-api/paging/*.ts',
  'src/backends/sqlite/search/{access-condition,panel-patients}.ts',
  'src/backends/upstream/access/*.ts',
  'src/backends/upstream/membership/*.ts',
  'src/backends/upstream/search/{gather,named-patients,narrow}.ts',
]

/** Tests that need neither keys nor sockets. */
const QUICK = [
  'src/{smart,fhir}/**/*.test.ts',
  'src/cli/policy-file.test.ts',
  'src/fhir-api/{access,paging}/*.test.ts',
  'src/backends/upstream/search/{gather,named-patients,narrow}.test.ts',
  'src/interceptor/explain*.test.ts',
  'src/interceptor/decision/*.test.ts',
]

/** The others, for what nothing else notices, and is not known to change nothing. */
const SLOW = [
  'src/{interceptor,fhir-api}/**/*.test.ts',
  'src/backends/sqlite/{reach,search/paging}.test.ts',
  'src/backends/upstream/{hostile-*,writes}.test.ts',
  'src/backends/upstream/{membership,search}/*.test.ts',
  'test/{oracles,policy,attacks*}.test.ts',
]

const testsIn = (patterns: readonly string[]) =>
  patterns.flatMap(pattern => globSync(pattern, { cwd: ROOT }).sort())
// The vectors are no test file.
const quick = ['vectors', ...testsIn(QUICK)]
const tests = [...new Set([...quick, ...testsIn(SLOW)])]
const graph = importGraph(ROOT, ['src/interceptor/index.ts', ...tests.filter(test => test !== 'vectors')])

function sourceOf(file: string): string {
  return readFileSync(resolve(ROOT, file), 'utf8')
}

function filesIn(paths: readonly string[]): readonly string[] {
  const files = DECIDING.flatMap(pattern => globSync(pattern, { cwd: ROOT }).sort())
    // A hint tells people why, and decides nothing.
    .filter(file => !/\.test\.ts$|\/testing\/|\/index\.ts$|\/hint\.ts$/.test(file))
  return paths.length === 0 ? files : files.filter(file => paths.some(path => file.startsWith(path)))
}

function batchesOf(file: string, listed: readonly string[]): readonly Batch[] {
  const mutants = mutantsOf(file, sourceOf(file))
  const isListed = (mutant: Mutant) => listed.includes(nameOf(mutant))
  const ordered = tests.toSorted((a, b) => distance(a, file) - distance(b, file))
  const near = ordered.filter(test => distance(test, file) < FAR)
  const unlisted = mutants.filter(mutant => !isListed(mutant))
  return [...cut(unlisted, QUICKLY ? near : ordered), ...cut(mutants.filter(isListed), near)]
}

function cut(mutants: readonly Mutant[], by: readonly string[]): readonly Batch[] {
  return Array.from({ length: Math.ceil(mutants.length / BATCH) }, (_, at) => ({
    mutants: mutants.slice(at * BATCH, (at + 1) * BATCH),
    tests: by,
  }))
}

const FAR = 4

/** The tests of the file itself before those of its folder and of that above, then the quick ones, each in their order. */
function distance(test: string, file: string): number {
  if (test === file.replace(/\.ts$/, '.test.ts')) return 0
  if (dirname(test) === dirname(file)) return 1
  if (quick.includes(test)) return 2
  return test.startsWith('src/interceptor/') && dirname(test) === dirname(dirname(file)) ? 3 : FAR
}

/** Tests that fail by themselves would notice everything. */
async function needSound(): Promise<void> {
  const sound = { line: 1, start: 0, end: 0, text: '', was: '' }
  const mutants = ['src/smart/scope.ts', 'src/fhir/request-path.ts'].map(file => ({ ...sound, file }))
  await tryAll([{ mutants, tests }], graph, ({ mutant, by, why }) => {
    if (by !== undefined)
      throw new Error(`Cannot mutate ${mutant.file}: ${by} fails without a mutant: ${why}`)
  })
}

/** The line itself names a mutant, so that a list of them outlives what is added above it; of lines that are alike, which. */
function nameOf({ file, was, text, start }: Mutant): string {
  const source = sourceOf(file)
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
function listedIn(files: readonly string[]): readonly string[] {
  return sourceOf(LIST)
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
const files = filesIn(process.argv.slice(2).filter(it => !it.startsWith('--')))
const listed = listedIn(files)
const batches = files.flatMap(file => batchesOf(file, listed))
const count = batches.reduce((sum, { mutants }) => sum + mutants.length, 0)
const results: Result[] = []
await needSound()
await tryAll(batches, graph, result => {
  results.push(result)
  if (result.by === undefined) process.stderr.write(`\rLeft: ${nameOf(result.mutant)}\n`)
  process.stderr.write(`\r${results.length} of ${count} tried `)
})
process.stderr.write('\n')

const survivors = new Set(results.filter(({ by }) => by === undefined).map(({ mutant }) => nameOf(mutant)))
const news = [...survivors].filter(name => !listed.includes(name)).sort()
const stale = listed.filter(name => !survivors.has(name))
for (const [room, ofRoom] of Map.groupBy(results, ({ mutant }) => mutant.file.split('/', 2).join('/')))
  process.stdout.write(
    `${room.padEnd(18)} ${ofRoom.length} mutants, ${ofRoom.filter(({ by }) => by !== undefined).length} noticed\n`,
  )
for (const name of stale) process.stdout.write(`Listed, and noticed or gone: ${name}\n`)
for (const name of news) process.stdout.write(`Survived: ${name}\n`)
process.stdout.write(
  `${results.length} mutants, ${results.filter(({ by }) => by !== undefined).length} noticed, ${survivors.size - news.length} listed, ` +
    `${news.length} survived, in ${Math.round((performance.now() - began) / 60_000)} min\n`,
)
process.exitCode = news.length > 0 || stale.length > 0 ? 1 : 0
