import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Test files that run one after another in one process, which loads the modules that they share once. */
export interface TestGroup {
  readonly name: string
  readonly files: readonly string[]
}

const ROOT = resolve(import.meta.dirname, '..')
const RUNNER = pathToFileURL(resolve(ROOT, 'test/support/run-group.ts')).href

/** So many that modules are loaded seldom, so few that two cores finish at the same time. */
const MAX_GROUP = 24

/** Flows in a browser take longest. */
const MAX_BROWSER_GROUP = 3

/** The text of a test, and of the helpers beside it (`testing/`) that it imports. */
export function readTexts(file: string): readonly string[] {
  const text = readFileSync(file, 'utf8')
  const helpers = [...text.matchAll(/^(?:import .*|\}) from '(\.[^']*\/testing\/[^']+)'/gm)].map(
    ([, path = '']) => path,
  )
  return [text, ...helpers.map(path => readFileSync(resolve(dirname(file), path), 'utf8'))]
}

/** Measures time or memory, which tests of another kind in the process would distort. */
const MEASURES =
  /support\/(growth|cost-probe|measured-servers)\.ts|\b(process\.(cpuUsage|memoryUsage)|performance\.now)\b/

/** The order in which the kinds of tests start: the longest first. */
const KINDS = ['browser', 'servers that are measured', 'measurements', 'other'] as const

export function groupTests(files: readonly string[]): readonly TestGroup[] {
  const kinds = Map.groupBy(files, findKind)
  return KINDS.flatMap(kind =>
    splitGroup(
      { name: kind, files: (kinds.get(kind) ?? []).toSorted((a, b) => countUnits(a) - countUnits(b)) },
      kind === 'browser' ? MAX_BROWSER_GROUP : MAX_GROUP,
    ),
  )
}

/** Tests of whole flows and commands take longer than those of units in `src`, and begin earlier. */
function countUnits(file: string): number {
  return file.startsWith(resolve(ROOT, 'src')) ? 1 : 0
}

function findKind(file: string): (typeof KINDS)[number] {
  const text = readTexts(file).join('\n')
  if (/support\/measured-servers\.ts/.test(text)) return 'servers that are measured'
  if (MEASURES.test(text)) return 'measurements'
  return /support\/browser\.ts/.test(text) ? 'browser' : 'other'
}

function splitGroup({ name, files }: TestGroup, largest: number): readonly TestGroup[] {
  const parts = Math.ceil(files.length / largest)
  const size = Math.ceil(files.length / parts)
  return Array.from({ length: parts }, (_, at) => ({
    name: parts === 1 ? name : `${name} ${at + 1}/${parts}`,
    files: files.slice(at * size, (at + 1) * size),
  }))
}

/** The file that a process runs: the only test file, or one that imports all of the group. */
export function writeEntry({ files, name }: TestGroup, folder: string): string {
  const [first, ...others] = files
  if (first !== undefined && others.length === 0) return first
  const entry = join(folder, `${name.replaceAll(/[^\w-]+/g, '-')}.mjs`)
  const urls = files.map(file => pathToFileURL(file).href)
  writeFileSync(
    entry,
    `import { runGroup } from ${JSON.stringify(RUNNER)}\nrunGroup(${JSON.stringify(urls, null, 2)})\n`,
  )
  return entry
}
