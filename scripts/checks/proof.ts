import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readVectorFiles } from '../site/vectors.ts'
import { VERSION as KEYCLOAK } from '../test-keycloak/keycloak.ts'
import type { Sources } from './modules.ts'
import { ROOT } from './sources.ts'

/** `<!-- count rules -->498`: a number by its name. */
const COUNT = /<!-- count (\w+) -->[\d.,]+/g
/** A package of npm with its version. */
const PACKAGE = /`([\w@/-]+)` \d+\.\d+\.\d+/g

/** docs/proof.md with current counts and versions. */
export function fillCounts(page: string, sources: Sources): string {
  const counts = countAll(sources)
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const versions = new Map(Object.entries<string>({ ...dependencies, ...devDependencies }))
  return page
    .replace(COUNT, (_, name) => `<!-- count ${name} -->${find(counts, name)}`)
    .replace(PACKAGE, (_, name) => `\`${name}\` ${find(versions, name)}`)
}

function countAll(sources: Sources): ReadonlyMap<string, string> {
  const count = (page: string, row: RegExp) => (sources.get(page)?.match(row) ?? []).length
  const counts: readonly (readonly [string, number])[] = [
    ['rules', count('docs/specification.md', /^- \*\*[A-Z]+-\d+\*\*/gm)],
    ['requirements', count('docs/internal/smart-conformance.md', /^\| [A-Z]+-[^|]*\|/gm)],
    ['attacks', count('vectors/README.md', /^\| \d+ \|/gm)],
    ['vectors', readVectorFiles().flatMap(({ vectors }) => vectors).length],
  ]
  return new Map([
    ['keycloak', KEYCLOAK],
    ...counts.map(([name, number]) => [name, number.toLocaleString('en')] as const),
  ])
}

function find(values: ReadonlyMap<string, string>, name: string): string {
  const value = values.get(name)
  if (value === undefined) throw new Error(`docs/proof.md names ${name}, which does not exist`)
  return value
}
