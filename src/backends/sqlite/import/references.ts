/** What the references of a Bundle are replaced by: full addresses of its entries, and conditional references. */
export type Replacements = ReadonlyMap<string, string>

const conditional = /^[A-Z][A-Za-z]+\?./

export function isConditional(reference: string): boolean {
  return conditional.test(reference)
}

/** Every reference of a resource, and every address of an attachment (which may be an entry of the Bundle, too). */
export function* referencesIn(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return
  for (const [key, below] of Object.entries(value)) {
    if (typeof below === 'object') yield* referencesIn(below)
    else if (isReferring(key, below)) yield below
  }
}

/** The same with the references replaced; what needs no change is shared with the original. */
export function replaceReferences(value: unknown, by: Replacements): unknown {
  if (by.size === 0 || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(item => replaceReferences(item, by))
  return Object.fromEntries(Object.entries(value).map(([key, below]) => [key, replaced(key, below, by)]))
}

function replaced(key: string, value: unknown, by: Replacements): unknown {
  return isReferring(key, value) ? (by.get(value) ?? value) : replaceReferences(value, by)
}

function isReferring(key: string, value: unknown): value is string {
  return (key === 'reference' || key === 'url') && typeof value === 'string'
}
