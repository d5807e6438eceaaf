import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const IMPORTED = /(?:\bfrom|\bimport)\s*\(?\s*'(\.{1,2}\/[^']+\.ts)'/g

/** The files that load a file, directly or by others, and the file itself: those that a change of it can change. */
export function dependantsOf(file: string, graph: ReadonlyMap<string, readonly string[]>): Set<string> {
  const found = new Set([file])
  // A set that grows while it is walked is walked to its end.
  for (const loaded of found)
    for (const [other, imports] of graph) if (imports.includes(loaded)) found.add(other)
  return found
}

/** What each of these files imports, and what that imports. Paths are below the root. */
export function importGraph(root: string, files: readonly string[]): Map<string, readonly string[]> {
  const graph = new Map<string, readonly string[]>()
  const queue = new Set(files)
  for (const file of queue) {
    const imports = importsOf(root, file)
    graph.set(file, imports)
    for (const other of imports) queue.add(other)
  }
  return graph
}

function importsOf(root: string, file: string): readonly string[] {
  const text = readFileSync(join(root, file), 'utf8').replaceAll(/^import type [\s\S]*?from '.*'$/gm, '')
  const paths = [...text.matchAll(IMPORTED)].map(([, path = '']) => join(dirname(file), path))
  return [...new Set(paths)].filter(path => existsSync(join(root, path)))
}
