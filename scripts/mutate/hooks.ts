import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Mutant } from './mutants.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const ROOMS = /\/src\/(?:scope|consent|interceptor)\/(?!testing\/auth-server)|\/src\/cli\/policy-file/

function mutated({ start, end, text }: Mutant, source: string): string {
  return source.slice(0, start) + text + source.slice(end)
}

/** Has a mutant loaded in the place of its file; sampling tests run fewer samples. */
export function loadMutant(mutant: Mutant): void {
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context)
      if (!url.startsWith('file:') || loaded.source == null) return loaded
      const path = fileURLToPath(url)
      const source = String(loaded.source)
      if (path === resolve(ROOT, mutant.file)) return { ...loaded, source: mutated(mutant, source) }
      return path.endsWith('.test.ts') ? { ...loaded, ...fewer(path) } : loaded
    },
  })
}

/** Sampling tests with fewer samples. */
function fewer(path: string) {
  const source = readFileSync(path, 'utf8').replaceAll(/numRuns: [\d_]+/g, 'numRuns: 300')
  return { format: 'module-typescript', source, shortCircuit: true } as const
}

/** Has `?mutant=n` loaded as the n-th of these, with rooms of its own, so that one process can try many. */
export function loadMutants(mutants: readonly Mutant[]): void {
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier === 'node:test' && context.parentURL?.includes('?mutant='))
        return { url: new URL('test-shim.ts', import.meta.url).href, shortCircuit: true }
      const resolved = next(specifier, context)
      const asked = /\?mutant=\d+$/.exec(context.parentURL ?? '')?.[0]
      const isOurs = asked !== undefined && ROOMS.test(resolved.url) && !resolved.url.includes('?')
      return isOurs ? { ...resolved, url: `${resolved.url}${asked}` } : resolved
    },
    load(url, context, next) {
      const mutant = mutants[Number(/\?mutant=(\d+)$/.exec(url)?.[1])]
      const path = url.startsWith('file:') ? fileURLToPath(url) : ''
      if (mutant && path.endsWith('.test.ts')) return { ...next(url, context), ...fewer(path) }
      if (!mutant || path !== resolve(ROOT, mutant.file)) return next(url, context)
      const source = mutated(mutant, readFileSync(path, 'utf8'))
      return { format: 'module-typescript', source, shortCircuit: true }
    },
  })
}
