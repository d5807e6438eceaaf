import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { extractCommit } from '../../test/support/release-code.ts'
import { runBench, type Tree } from '../shared/run-bench.ts'
import { type Compared, type Figures, readFigures } from './ratios.ts'
import { takeTurns } from './take-turns.ts'

/** Fewer launches than a whole run has, of both trees alike. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = { launch: ['900'] }

/**
 * Runs the benches of this tree and of a commit in turns. Each tree has its own benches and its own packages. A bench that the
 * commit does not have is left out.
 */
export async function compareTrees(
  own: Tree,
  commit: string,
  names: readonly string[],
): Promise<readonly Compared[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-against-'))
  try {
    const now = { ...own, env: { ...own.env, BENCH_TURN: '1' } }
    const before = buildTree({ ...now, root: folder }, commit)
    const all = []
    for (const name of names) {
      process.stdout.write(`# ${name}\n`)
      if (!hasBench(before, name)) {
        process.stdout.write('Not compared: the other tree does not have it\n')
        continue
      }
      all.push(
        ...(await takeTurns(
          () => measure(before, name),
          () => measure(now, name),
        )),
      )
    }
    return all
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function buildTree({ root, env }: Omit<Tree, 'execPath'>, commit: string): Tree {
  extractCommit(commit, root)
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: root, stdio: 'inherit' })
  if (status !== 0) throw new Error(`Cannot install the packages of ${commit}`)
  return { root, env, execPath: join(root, 'node_modules/.bin/node') }
}

export function hasBench({ root }: Pick<Tree, 'root'>, name: string): boolean {
  return existsSync(join(root, 'bench', `${name}.ts`))
}

/** A bench that only misses a goal has figures all the same. */
async function measure(tree: Tree, name: string): Promise<Figures> {
  const { tables, exitCode } = await runBench(tree, name, ARGUMENTS[name])
  if (tables.size === 0) throw new Error(`Cannot compare ${name}: it ended with ${exitCode} and has no table`)
  return readFigures(tables.values())
}
