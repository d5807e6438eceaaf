import { type Entry, fail, isRecord, parseReference } from '../../../fhir/index.ts'
import type { Problem } from '../problem.ts'

/** What the entries of a transaction call each other (`fullUrl`), and what each is when it is done. */
export type Identities = ReadonlyMap<string, string>

/** What is made anew has no id yet: an address that no resource in anybody's compartment has. */
export function newIdentity(type: string): string {
  return `http://new.invalid/${type}/new`
}

/**
 * A `fullUrl` of one's own making must be a `urn:`. Another address could stand for one resource here and for another
 * where it is resolved.
 */
export function fullUrlProblem(entries: readonly Entry[], baseUrl: string): Problem | undefined {
  const known = new Set<string>()
  for (const [entry, { fullUrl, interaction }] of entries.entries()) {
    if (fullUrl === undefined) continue
    const own = parseReference(fullUrl, baseUrl)
    const isOwn = 'id' in interaction && own?.type === interaction.type && own?.id === interaction.id
    if (known.has(fullUrl) || !(fullUrl.startsWith('urn:') || isOwn))
      return fail({
        problem: 'bad-bundle',
        text: 'Cannot process entry: its fullUrl must be a urn of its own',
        entry,
      })
    known.add(fullUrl)
  }
  return undefined
}

/** Content in which references to other entries are what they stand for. */
export function linked(content: unknown, identities: Identities): unknown {
  if (identities.size === 0) return content
  if (Array.isArray(content)) return content.map(it => linked(it, identities))
  if (!isRecord(content)) return content
  return Object.fromEntries(
    Object.entries(content).map(([name, value]) => [
      name,
      name === 'reference' && typeof value === 'string'
        ? (identities.get(value) ?? value)
        : linked(value, identities),
    ]),
  )
}
