/** A worker thread that runs the vectors and tests on each mutant and reports which test detects it. */
import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { loadMutants } from './hooks.ts'
import type { Mutant } from './mutants.ts'
import { forgetRegistered, runRegistered } from './test-shim.ts'

/** Input of the worker thread. Tests run in this order. */
export interface Work {
  readonly mutants: readonly Mutant[]
  readonly first: number
  readonly tests: readonly string[]
  readonly graph: ReadonlyMap<string, readonly string[]>
}

/** Messages of the worker thread: the test that it starts (to identify one that never ends) and the result of a mutant. */
export type Message =
  | { readonly trying: number; readonly test: string }
  | { readonly tried: number; readonly by: string | undefined; readonly why?: string }
  | { readonly done: true }

interface VectorFile {
  readonly fhirBaseUrl: string
  readonly vectors?: readonly {
    readonly request: object
    readonly scope: unknown
    readonly context: object
    readonly settings: { readonly searchLetter: string; readonly contexts: readonly string[] }
    readonly expected: Readonly<Record<string, unknown>>
  }[]
}

const ROOT = resolve(import.meta.dirname, '../..')
const EXPLAIN = 'src/interceptor/index.ts'
const VECTORS = 'vectors'

function send(message: Message): void {
  parentPort?.postMessage(message)
}

const files = globSync('vectors/*.json', { cwd: ROOT })
  .filter(name => !name.includes('with-data'))
  .map((name): VectorFile => JSON.parse(readFileSync(resolve(ROOT, name), 'utf8')))

async function runVectors(at: number): Promise<void> {
  const { explain } = await import(`${ROOT}/${EXPLAIN}?mutant=${at}`)
  for (const { fhirBaseUrl, vectors = [] } of files)
    for (const { request, scope, context, settings, expected } of vectors) {
      const explanation = explain(
        {
          ...request,
          scope,
          ...context,
          searchPermission: settings.searchLetter,
          contexts: settings.contexts,
        },
        fhirBaseUrl,
      )
      for (const key of Object.keys(expected))
        if (JSON.stringify(explanation[key]) !== JSON.stringify(expected[key]))
          throw new Error(`Vector: ${key}`)
    }
}

async function runTest(test: string, at: number): Promise<void> {
  if (test === VECTORS) return runVectors(at)
  await import(`${ROOT}/${test}?mutant=${at}`)
  await runRegistered()
}

async function tryMutant(at: number, tests: readonly string[], changed: ReadonlySet<string>): Promise<void> {
  for (const test of tests) {
    if (!changed.has(test === VECTORS ? EXPLAIN : test)) continue
    send({ trying: at, test })
    try {
      await runTest(test, at)
    } catch (error) {
      forgetRegistered()
      return send({ tried: at, by: test, why: String(error).slice(0, 300) })
    }
  }
  send({ tried: at, by: undefined })
}

if (parentPort) {
  const { mutants, first, tests, graph }: Work = workerData
  const findChanged = loadMutants(mutants, graph)
  for (let at = first; at < mutants.length; at++) await tryMutant(at, tests, findChanged(at))
  send({ done: true })
}
