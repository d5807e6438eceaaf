import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Test files that run one after another in one process, which loads the modules that they share once. */
export interface TestGroup {
  readonly name: string
  readonly files: readonly string[]
}

const ROOT = resolve(import.meta.dirname, '..')
const RUNNER = pathToFileURL(resolve(ROOT, 'test/support/run-group.ts')).href

/** Small enough that two cores finish at the same time. */
const LARGEST_GROUP = 12

/** The text of a test, and of the helpers beside it (`testing/`) that it imports. */
export function readTexts(file: string): readonly string[] {
  const text = readFileSync(file, 'utf8')
  const helpers = [...text.matchAll(/^(?:import .*|\}) from '(\.[^']*\/testing\/[^']+)'/gm)].map(
    ([, path = '']) => path,
  )
  return [text, ...helpers.map(path => readFileSync(resolve(dirname(file), path), 'utf8'))]
}

/** Measures time or memory, which other tests in the process would distort. */
const MEASURES =
  /support\/(growth|cost-probe|measured-servers)\.ts|\b(process\.(cpuUsage|memoryUsage)|performance\.now)\b/

/**
 * Flows in a browser take longest and come first. Then the files that measure, each in a process of its own. Then the tests of
 * each module.
 */
export function groupTests(files: readonly string[]): readonly TestGroup[] {
  const kinds = Map.groupBy(files, file => {
    const text = readTexts(file).join('\n')
    if (MEASURES.test(text)) return 'alone'
    return /support\/browser\.ts/.test(text) ? 'browser' : 'module'
  })
  const alone = kinds.get('alone') ?? []
  const modules = Map.groupBy(kinds.get('module') ?? [], findModule)
  return [
    ...splitGroup({ name: 'browser', files: kinds.get('browser') ?? [] }),
    ...alone.map(file => ({ name: relative(ROOT, file), files: [file] })),
    ...[...modules]
      .map(([name, files]) => ({ name, files }))
      .sort((a, b) => b.files.length - a.files.length)
      .flatMap(splitGroup),
  ]
}

/** `src/auth`, `test`, or the folder of a file that is not in the repository. */
function findModule(file: string): string {
  const path = relative(ROOT, file)
  const [top = '', module = ''] = path.split('/')
  if (top === '..') return dirname(file)
  return top === 'src' ? join(top, module) : top
}

function splitGroup({ name, files }: TestGroup): readonly TestGroup[] {
  const parts = Math.ceil(files.length / LARGEST_GROUP)
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
