import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Table } from './report.ts'

/** A source tree with its packages, and how its benches are run. */
export interface Tree {
  readonly root: string
  readonly execPath: string
  readonly env: NodeJS.ProcessEnv
}

/** Runs a bench in a process of its own. Tables of the same name become one. */
export async function runBench(
  { root, execPath, env }: Tree,
  name: string,
  args: readonly string[] = [],
): Promise<{ readonly tables: ReadonlyMap<string, Table>; readonly exitCode: number | null }> {
  const tables = new Map<string, Table>()
  const child = fork(join(root, 'bench', `${name}.ts`), args, { cwd: root, env, execPath })
  child.on('message', (table: Table) => {
    tables.set(table.name, { ...table, rows: [...(tables.get(table.name)?.rows ?? []), ...table.rows] })
  })
  const [exitCode] = await once(child, 'close')
  return { tables, exitCode }
}
