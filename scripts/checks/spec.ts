import type { Sources } from './modules.ts'

/** A test as docs/spec.md names it: `` `src/scope/scope.test.ts` “part of its name” ``; the name may be left out. */
const TEST = /`([^`]+\.test\.ts)`(?:\s*“([^”]+)”)?/g

/** Rows of docs/spec.md that name no test, or a test that is not there. */
export function specFaults(page: string, text: string, sources: Sources): readonly string[] {
  return rowsOf(text).flatMap(row => {
    const rule = row.split('|')[1]?.trim() ?? ''
    const tests = [...row.matchAll(TEST)]
    if (tests.length === 0) return [`${page}: ${rule} names no test`]
    return tests.flatMap(([, file = '', name]) => {
      const source = sources.get(file)
      if (source === undefined) return [`${page}: ${rule} names ${file}, which does not exist`]
      return name === undefined || source.includes(name)
        ? []
        : [`${page}: ${rule} names the test “${name}”, which is not in ${file}`]
    })
  })
}

/** Body rows of the tables: what follows a header and its line of dashes. */
function rowsOf(text: string): readonly string[] {
  const lines = text.split('\n')
  return lines.filter((line, at) => {
    const isRow = line.startsWith('|')
    const isRule = /^\|[\s:|-]+\|$/.test(line)
    const isHeader = /^\|[\s:|-]+\|$/.test(lines[at + 1] ?? '')
    return isRow && !isRule && !isHeader
  })
}
