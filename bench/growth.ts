/**
 * `node bench/growth.ts [subject …] [--size=1000000] [--folder=/tmp/growth]`: the CPU time of one request on a
 * small data set and on one a hundred times as large. Exits 1 if a ratio is beyond its limit, or if a request keeps the
 * event loop busy for too long (`blocked`). The time of some requests may grow with the data (`linear`). Each file of
 * `bench/growth/` is a subject and runs in a process of its own. `--size` is the size of the large data set; `--folder`
 * keeps the data sets for the next run.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { measureGrowth, type Subject } from './growth/measure.ts'

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { size: { type: 'string' }, folder: { type: 'string' }, subject: { type: 'string' } },
})

if (values.subject !== undefined) process.exitCode = (await runSubject(values.subject)) ? 0 : 1
else process.exitCode = listSubjects().filter(name => !spawnSubject(name)).length > 0 ? 1 : 0

function listSubjects(): readonly string[] {
  return readdirSync(join(import.meta.dirname, 'growth'))
    .filter(file => file.endsWith('.ts') && file !== 'measure.ts')
    .map(file => file.slice(0, -'.ts'.length))
    .filter(name => positionals.length === 0 || positionals.includes(name))
}

function spawnSubject(name: string): boolean {
  const file = join(import.meta.dirname, 'growth.ts')
  const options = process.argv.slice(2).filter(it => it.startsWith('--'))
  return (
    spawnSync(process.execPath, [file, `--subject=${name}`, ...options], { stdio: 'inherit' }).status === 0
  )
}

async function runSubject(name: string): Promise<boolean> {
  const { subject } = (await import(`./growth/${name}.ts`)) as { readonly subject: Subject }
  const folder = values.folder ?? mkdtempSync(join(tmpdir(), 'growth-'))
  mkdirSync(folder, { recursive: true })
  try {
    return await measureGrowth(name, subject, Number(values.size ?? subject.size), folder)
  } finally {
    if (values.folder === undefined) rmSync(folder, { recursive: true })
  }
}
