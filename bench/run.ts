/**
 * `npm run bench [-- name …] [--write-docs] [--quick]`: the measurements, one after the other, each in a process of its own.
 * Tables of the same name are printed as one. Without a name, all run except those that take long or need more than Node.
 * `--write-docs` also writes the tables into docs/performance.md. `--quick` shows that the benches work: one round each.
 *
 * `npm run bench -- --against <commit, tag, version or "release"> [name …]`: the same figures of another tree, of the last
 * release for example. Both trees take turns. Exits 1 if a figure rose by more than a tenth and the CHANGELOG does not say why.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { findUnreleased } from '../scripts/release/changelog.ts'
import { findCommit, findLastRelease } from '../test/support/release-code.ts'
import { compareTrees } from './against/compare-trees.ts'
import { findUnexplained, MOST } from './against/explained.ts'
import { makeTable } from './against/ratios.ts'
import { formatTable, type Table } from './shared/report.ts'
import { runBench } from './shared/run-bench.ts'

const ROOT = resolve(import.meta.dirname, '..')
const PAGE = join(ROOT, 'docs/performance.md')
const ONLY_BY_NAME = ['growth', 'keycloak', 'upstream']
/** They print their figures without a table, or take too long for many turns. */
const NOT_IN_TURNS = [...ONLY_BY_NAME, 'audit', 'workers']

const { positionals: wanted, values } = parseArgs({
  allowPositionals: true,
  options: { 'write-docs': { type: 'boolean' }, quick: { type: 'boolean' }, against: { type: 'string' } },
})
const names = readdirSync(import.meta.dirname)
  .filter(file => file.endsWith('.ts') && file !== 'run.ts')
  .map(file => file.slice(0, -'.ts'.length))
  .filter(name =>
    wanted.length === 0
      ? !(values.against === undefined ? ONLY_BY_NAME : NOT_IN_TURNS).includes(name)
      : wanted.includes(name),
  )

const own = {
  root: ROOT,
  execPath: process.execPath,
  env: { ...process.env, ...(values.quick && { BENCH_QUICK: '1' }) },
}
const machine = describeMachine()
if (values.against === undefined) await measureAll()
else await compareWith(values.against)

async function measureAll(): Promise<void> {
  const tables = new Map<string, Table>()
  const missed: string[] = []
  for (const name of names) {
    process.stdout.write(`# ${name}\n`)
    const bench = await runBench(own, name)
    for (const table of bench.tables.values())
      tables.set(table.name, { ...table, rows: [...(tables.get(table.name)?.rows ?? []), ...table.rows] })
    if (bench.exitCode !== 0) missed.push(name)
  }
  publish([...tables.values()], machine)
  if (missed.length > 0) process.stdout.write(`\nFailed or beyond a limit: ${missed.join(', ')}\n`)
  process.exitCode = missed.length > 0 ? 1 : 0
}

async function compareWith(name: string): Promise<void> {
  const other = name === 'release' ? findLastRelease() : { version: name, commit: findCommit(name) }
  if (other?.commit === undefined) throw new Error(`Cannot compare: the history has no ${name}`)
  const compared = await compareTrees(own, other.commit, names)
  publish([makeTable(compared)], `Compared with ${other.version} (${other.commit.slice(0, 8)}). ${machine}`)
  const changes = findUnreleased(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'))
  const slower = findUnexplained(compared, changes).map(({ name }) => name)
  if (slower.length === 0) return
  process.stdout.write(
    `\nAbove ${MOST}, without a line "- Slower: \`name\` …" in CHANGELOG.md:\n${slower.join('\n')}\n`,
  )
  process.exitCode = 1
}

function publish(tables: readonly Table[], about: string): void {
  for (const table of tables) process.stdout.write(`\n${formatTable(table)}`)
  process.stdout.write(`\n${about}\n`)
  if (!values['write-docs']) return
  const page = readFileSync(PAGE, 'utf8')
  writeFileSync(
    PAGE,
    tables.reduce((text, table) => insertTable(text, table, about), page),
  )
}

function describeMachine(): string {
  const day = new Date().toISOString().slice(0, 10)
  const processor = `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? process.arch})`
  const rounds = values.quick ? ', one round only' : ''
  return `Measured on ${day}: Node ${process.versions.node}, ${processor}, load average before the run ${loadavg()[0]?.toFixed(1)}${rounds}.`
}

/** Replaces the text between the comments that name the table. */
function insertTable(page: string, table: Table, about: string): string {
  const begin = `<!-- bench ${table.name} -->`
  const end = '<!-- end -->'
  const from = page.indexOf(begin)
  if (from < 0) return page
  return `${page.slice(0, from)}${begin}\n${about}\n\n${formatTable(table)}${page.slice(page.indexOf(end, from))}`
}
