/**
 * `npm run bench [-- name …] [--write-docs] [--quick]`: the measurements, one after the other, each in a process of its own.
 * Tables of the same name are printed as one. Without a name, all run except those that take long or need more than Node.
 * `--write-docs` also writes the tables into docs/performance.md. `--quick` shows that the benches work: one round each.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { formatTable, type Table } from './shared/report.ts'

const ONLY_BY_NAME = ['growth', 'keycloak', 'upstream']
const PAGE = join(import.meta.dirname, '../docs/performance.md')

const { positionals: wanted, values } = parseArgs({
  allowPositionals: true,
  options: { 'write-docs': { type: 'boolean' }, quick: { type: 'boolean' } },
})
const names = readdirSync(import.meta.dirname)
  .filter(file => file.endsWith('.ts') && file !== 'run.ts')
  .map(file => file.slice(0, -'.ts'.length))
  .filter(name => (wanted.length === 0 ? !ONLY_BY_NAME.includes(name) : wanted.includes(name)))

const env = { ...process.env, ...(values.quick && { BENCH_QUICK: '1' }) }
const machine = describeMachine()
const tables = new Map<string, Table>()
const missed: string[] = []
for (const name of names) {
  process.stdout.write(`# ${name}\n`)
  const child = fork(join(import.meta.dirname, `${name}.ts`), { env })
  child.on('message', (table: Table) => {
    tables.set(table.name, { ...table, rows: [...(tables.get(table.name)?.rows ?? []), ...table.rows] })
  })
  const [exitCode] = await once(child, 'close')
  if (exitCode !== 0) missed.push(name)
}
for (const table of tables.values()) process.stdout.write(`\n${formatTable(table)}`)
process.stdout.write(`\n${machine}\n`)
if (missed.length > 0) process.stdout.write(`\nFailed or beyond a limit: ${missed.join(', ')}\n`)
if (values['write-docs'])
  writeFileSync(PAGE, [...tables.values()].reduce(insertTable, readFileSync(PAGE, 'utf8')))
process.exitCode = missed.length > 0 ? 1 : 0

function describeMachine(): string {
  const day = new Date().toISOString().slice(0, 10)
  const processor = `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? process.arch})`
  const rounds = values.quick ? ', one round only' : ''
  return `Measured on ${day}: Node ${process.versions.node}, ${processor}, load average before the run ${loadavg()[0]?.toFixed(1)}${rounds}.`
}

/** Replaces the text between the comments that name the table. */
function insertTable(page: string, table: Table): string {
  const begin = `<!-- bench ${table.name} -->`
  const end = '<!-- end -->'
  const from = page.indexOf(begin)
  if (from < 0) return page
  return `${page.slice(0, from)}${begin}\n${machine}\n\n${formatTable(table)}${page.slice(page.indexOf(end, from))}`
}
