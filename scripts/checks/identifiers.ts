import type { Sources } from './modules.ts'

const CODE_SPAN = /`([A-Za-z]+)(?:\(\))?`/g
/** With a capital letter inside: anything else may be a word, a parameter or a command. */
const IDENTIFIER = /^[A-Za-z]+[a-z][A-Z]\w*$/

/** Functions and types that pages for developers name in backticks and that no source has. */
export function findIdentifierFaults(pages: Sources, sources: Sources): readonly string[] {
  const known = new Set([...sources.values()].flatMap(text => text.match(/\w+/g) ?? []))
  return [...pages]
    .filter(([page]) => /^(?:ARCHITECTURE|CONTRIBUTING)\.md$|^src\/.*\/README\.md$/.test(page))
    .flatMap(([page, text]) =>
      [...text.matchAll(CODE_SPAN)]
        .map(([, name = '']) => name)
        .filter(name => IDENTIFIER.test(name) && !known.has(name))
        .map(name => `${page}: names ${name}, which no source has`),
    )
}
