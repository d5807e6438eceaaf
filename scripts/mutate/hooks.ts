import { readFileSync } from 'node:fs'
import { registerHooks, stripTypeScriptTypes } from 'node:module'
import { relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { dependantsOf } from './import-graph.ts'
import type { Mutant } from './mutants.ts'

const ROOT = resolve(import.meta.dirname, '../..')

/**
 * Has `?mutant=n` loaded as the n-th of these: the changed file, and anew whatever loads it, so that one process can try
 * many. All else is loaded once. Sampling tests take fewer samples.
 */
export function loadMutants(
  mutants: readonly Mutant[],
  graph: ReadonlyMap<string, readonly string[]>,
): (at: number) => ReadonlySet<string> {
  const known = new Map<string, ReadonlySet<string>>()
  const changedBy = (at: number): ReadonlySet<string> => {
    const file = mutants[at]?.file ?? ''
    const files = known.get(file) ?? dependantsOf(file, graph)
    known.set(file, files)
    return files
  }
  registerHooks({
    resolve(specifier, context, next) {
      const asked = /\?mutant=(\d+)$/.exec(context.parentURL ?? '')
      if (asked && specifier === 'node:test')
        return { url: new URL('test-shim.ts', import.meta.url).href, shortCircuit: true }
      const resolved = next(specifier, context)
      if (!asked || !resolved.url.startsWith('file:') || resolved.url.includes('?')) return resolved
      const isChanged = changedBy(Number(asked[1])).has(relative(ROOT, fileURLToPath(resolved.url)))
      return isChanged ? { ...resolved, url: `${resolved.url}${asked[0]}` } : resolved
    },
    load(url, context, next) {
      const at = /\?mutant=(\d+)$/.exec(url)?.[1]
      if (at === undefined) return next(url, context)
      return {
        format: 'module',
        source: sourceOf(fileURLToPath(url), mutants[Number(at)]),
        shortCircuit: true,
      }
    },
  })
  return changedBy
}

const stripped = new Map<string, string>()

function sourceOf(path: string, mutant: Mutant | undefined): string {
  if (mutant && path === resolve(ROOT, mutant.file)) return stripTypeScriptTypes(mutated(mutant))
  const source = stripped.get(path) ?? stripTypeScriptTypes(fewer(path, readFileSync(path, 'utf8')))
  stripped.set(path, source)
  return source
}

function mutated({ file, start, end, text }: Mutant): string {
  const source = readFileSync(resolve(ROOT, file), 'utf8')
  return source.slice(0, start) + text + source.slice(end)
}

function fewer(path: string, source: string): string {
  return path.endsWith('.test.ts') ? source.replaceAll(/numRuns: [\d_]+/g, 'numRuns: 300') : source
}
