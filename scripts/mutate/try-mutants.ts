/** A thread that tries mutants by the vectors and by tests, all in one process: it tells of each whether they notice. */
import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { loadMutants } from './hooks.ts'
import type { Mutant } from './mutants.ts'
import { forgetKept, runKept } from './test-shim.ts'

/** What the thread is given. Tests are tried in their order. */
export interface Work {
  readonly mutants: readonly Mutant[]
  readonly first: number
  readonly tests: readonly string[]
  readonly graph: ReadonlyMap<string, readonly string[]>
}

/** What it tells: what it is about to do, so that one that never ends is known; and what came of a mutant. */
export type Told =
  | { readonly trying: number; readonly test: string }
  | { readonly tried: number; readonly by: string | undefined; readonly why?: string }
  | { readonly done: true }

interface VectorFile {
  readonly fhirBaseUrl: string
  readonly vectors?: readonly {
    readonly request: object
    readonly scope: unknown
    readonly context: object
    readonly settings: object
    readonly expected: Readonly<Record<string, unknown>>
  }[]
}

const ROOT = resolve(import.meta.dirname, '../..')
const EXPLAIN = 'src/interceptor/index.ts'
const VECTORS = 'vectors'

function tell(told: Told): void {
  parentPort?.postMessage(told)
}

const files = globSync('vectors/*.json', { cwd: ROOT })
  .filter(name => !name.includes('with-data'))
  .map((name): VectorFile => JSON.parse(readFileSync(resolve(ROOT, name), 'utf8')))

async function runVectors(at: number): Promise<void> {
  const { explain } = await import(`${ROOT}/${EXPLAIN}?mutant=${at}`)
  for (const { fhirBaseUrl, vectors = [] } of files)
    for (const { request, scope, context, settings, expected } of vectors) {
      const told = explain({ ...request, scope, ...context, ...settings }, fhirBaseUrl)
      for (const key of Object.keys(expected))
        if (JSON.stringify(told[key]) !== JSON.stringify(expected[key])) throw new Error(`Vector: ${key}`)
    }
}

async function runTest(test: string, at: number): Promise<void> {
  if (test === VECTORS) return runVectors(at)
  await import(`${ROOT}/${test}?mutant=${at}`)
  await runKept()
}

async function tryOne(at: number, tests: readonly string[], changed: ReadonlySet<string>): Promise<void> {
  for (const test of tests) {
    if (!changed.has(test === VECTORS ? EXPLAIN : test)) continue
    tell({ trying: at, test })
    try {
      await runTest(test, at)
    } catch (error) {
      forgetKept()
      return tell({ tried: at, by: test, why: String(error).slice(0, 300) })
    }
  }
  tell({ tried: at, by: undefined })
}

if (parentPort) {
  const { mutants, first, tests, graph }: Work = workerData
  const changedBy = loadMutants(mutants, graph)
  for (let at = first; at < mutants.length; at++) await tryOne(at, tests, changedBy(at))
  tell({ done: true })
}
