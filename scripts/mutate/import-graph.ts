import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const IMPORTED = /(?:\bfrom|\bimport)\s*\(?\s*'(\.{1,2}\/[^']+\.ts)'/g

/** The file and every file that imports it, directly or indirectly. */
export function findDependants(file: string, graph: ReadonlyMap<string, readonly string[]>): Set<string> {
  const found = new Set([file])
  // Iterating over a set includes the members that are added meanwhile.
  for (const loaded of found)
    for (const [other, imports] of graph) if (imports.includes(loaded)) found.add(other)
  return found
}

/** The imports of these files and, recursively, of the files that they import. Paths are relative to the root. */
export function readImportGraph(root: string, files: readonly string[]): Map<string, readonly string[]> {
  const graph = new Map<string, readonly string[]>()
  const queue = new Set(files)
  for (const file of queue) {
    const imports = findImports(root, file)
    graph.set(file, imports)
    for (const other of imports) queue.add(other)
  }
  return graph
}

function findImports(root: string, file: string): readonly string[] {
  const text = readFileSync(join(root, file), 'utf8').replaceAll(/^import type [\s\S]*?from '.*'$/gm, '')
  const paths = [...text.matchAll(IMPORTED)].map(([, path = '']) => join(dirname(file), path))
  return [...new Set(paths)].filter(path => existsSync(join(root, path)))
}
