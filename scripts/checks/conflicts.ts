import type { Sources } from './modules.ts'

/** Pages with marks of a merge that was not finished. */
export function findConflictFaults(pages: Sources): readonly string[] {
  return [...pages]
    .filter(([, text]) => /^(?:<{7}|>{7}) /m.test(text))
    .map(([page]) => `${page}: has marks of a conflict`)
}
