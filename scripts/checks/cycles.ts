import { posix } from 'node:path'

/** Cycles among files, by what each imports. A cycle is given once, as a path that ends where it begins. */
export function findCycles(imports: ReadonlyMap<string, readonly string[]>): readonly (readonly string[])[] {
  const cycles: string[][] = []
  const done = new Set<string>()
  const path: string[] = []

  function visit(file: string): void {
    const at = path.indexOf(file)
    if (at >= 0) cycles.push([...path.slice(at), file])
    if (at >= 0 || done.has(file)) return
    path.push(file)
    for (const target of imports.get(file) ?? []) visit(target)
    path.pop()
    done.add(file)
  }

  for (const file of imports.keys()) visit(file)
  return cycles
}

/** The path of a file that another one imports. */
export function resolveImport(file: string, path: string): string {
  return posix.join(posix.dirname(file), path)
}
