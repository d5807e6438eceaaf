import type { Sources } from './modules.ts'

/** The type that lists the errors of each module. */
export const ERROR_TYPES = [
  { file: 'src/auth/words/reason.ts', type: 'RefusalCode' },
  { file: 'src/web/http/problems.ts', type: 'HttpProblem' },
] as const

/** The names in a union: of its literals, or of the first field of its members. */
export function findNames(text: string, type: string): readonly string[] {
  const start = text.search(new RegExp(`^(?:export )?type ${type} =`, 'm'))
  if (start < 0) return []
  const union = text.slice(start).split(/\n(?=\S)/)[0] ?? ''
  const members = [...union.matchAll(/^\s*\|\s*(?:\{\s*readonly \w+: )?'([^']+)'/gm)].map(
    ([, name = '']) => name,
  )
  const named = [...union.matchAll(/^\s*\|\s*([A-Z]\w+)\s*$/gm)].flatMap(([, name = '']) =>
    findKind(text, name),
  )
  return [...members, ...named]
}

/** A member that is an interface of the same file. */
function findKind(text: string, name: string): readonly string[] {
  const found = new RegExp(`interface ${name} \\{\\s*readonly \\w+: '([^']+)'`).exec(text)
  return found?.[1] === undefined ? [] : [found[1]]
}

function hasModule(file: string, sources: Sources): boolean {
  const module = file.split('/').slice(0, 2).join('/')
  return [...sources.keys()].some(source => source.startsWith(`${module}/`))
}

/** Errors that docs/errors.md does not name. */
export function findErrorFaults(page: string, text: string, sources: Sources): readonly string[] {
  return ERROR_TYPES.flatMap(({ file, type }) => {
    if (!hasModule(file, sources)) return []
    const names = findNames(sources.get(file) ?? '', type)
    if (names.length === 0) return [`${page}: cannot find the errors of ${file} (type ${type})`]
    return names
      .filter(name => !text.includes(`\`${name}\``))
      .map(name => `${page}: does not name ${name} of ${file}`)
  })
}
