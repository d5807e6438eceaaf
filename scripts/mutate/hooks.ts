import { readFileSync } from 'node:fs'
import { registerHooks, stripTypeScriptTypes } from 'node:module'
import { relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findDependants } from './import-graph.ts'
import type { Mutant } from './mutants.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const SHIM = new URL('test-shim.ts', import.meta.url).href

/**
 * Loads `?mutant=n` as the n-th mutant: the changed file, and another copy of every file that imports it, so that one
 * process can try many mutants. All other files are loaded once. Property tests take fewer samples.
 */
export function loadMutants(
  mutants: readonly Mutant[],
  graph: ReadonlyMap<string, readonly string[]>,
): (at: number) => ReadonlySet<string> {
  const known = new Map<string, ReadonlySet<string>>()
  const findChanged = (at: number): ReadonlySet<string> => {
    const file = mutants[at]?.file ?? ''
    const files = known.get(file) ?? findDependants(file, graph)
    known.set(file, files)
    return files
  }
  registerHooks({
    resolve(specifier, context, next) {
      // Also for suites that several tests share, which need not depend on the mutant.
      if (specifier === 'node:test' && context.parentURL !== SHIM) return { url: SHIM, shortCircuit: true }
      const requested = /\?mutant=(\d+)$/.exec(context.parentURL ?? '')
      const resolved = next(specifier, context)
      if (!requested || !resolved.url.startsWith('file:') || resolved.url.includes('?')) return resolved
      const isChanged = findChanged(Number(requested[1])).has(relative(ROOT, fileURLToPath(resolved.url)))
      return isChanged ? { ...resolved, url: `${resolved.url}${requested[0]}` } : resolved
    },
    load(url, context, next) {
      const at = /\?mutant=(\d+)$/.exec(url)?.[1]
      if (at === undefined) return next(url, context)
      return {
        format: 'module',
        source: readSource(fileURLToPath(url), mutants[Number(at)]),
        shortCircuit: true,
      }
    },
  })
  return findChanged
}

const stripped = new Map<string, string>()

function readSource(path: string, mutant: Mutant | undefined): string {
  if (mutant && path === resolve(ROOT, mutant.file)) return stripTypeScriptTypes(applyMutant(mutant))
  const source = stripped.get(path) ?? stripTypeScriptTypes(reduceSamples(path, readFileSync(path, 'utf8')))
  stripped.set(path, source)
  return source
}

function applyMutant({ file, start, end, text }: Mutant): string {
  const source = readFileSync(resolve(ROOT, file), 'utf8')
  return source.slice(0, start) + text + source.slice(end)
}

function reduceSamples(path: string, source: string): string {
  return path.endsWith('.test.ts') ? source.replaceAll(/numRuns: [\d_]+/g, 'numRuns: 300') : source
}
