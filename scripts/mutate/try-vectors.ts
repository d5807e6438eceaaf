/** A thread that tries mutants by the vectors, and by tests in the same process: it tells of each whether they notice. */
import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { loadMutants } from './hooks.ts'
import type { Mutant } from './mutants.ts'
import { runKept } from './test-shim.ts'

interface File {
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
const { mutants, first, tests }: { mutants: readonly Mutant[]; first: number; tests: readonly string[] } =
  workerData
const files = globSync('vectors/*.json', { cwd: ROOT })
  .filter(name => !name.includes('with-data'))
  .map((name): File => JSON.parse(readFileSync(resolve(ROOT, name), 'utf8')))

async function isNoticed(at: number): Promise<boolean> {
  try {
    const { explain } = await import(`${ROOT}/src/interceptor/index.ts?mutant=${at}`)
    const noticed = files.some(({ fhirBaseUrl, vectors = [] }) =>
      vectors.some(({ request, scope, context, settings, expected }) => {
        const told = explain({ ...request, scope, ...context, ...settings }, fhirBaseUrl)
        return Object.keys(expected).some(key => JSON.stringify(told[key]) !== JSON.stringify(expected[key]))
      }),
    )
    if (noticed) return true
    for (const test of tests) {
      await import(`${ROOT}/${test}?mutant=${at}`)
      await runKept()
    }
    return false
  } catch {
    return true
  }
}

loadMutants(mutants)
for (let at = first; at < mutants.length; at++) {
  parentPort?.postMessage({ begun: at })
  parentPort?.postMessage({ tried: at, noticed: await isNoticed(at) })
}
parentPort?.postMessage({ done: true })
