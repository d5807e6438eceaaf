import { findSearchParameter } from '../../../fhir/index.ts'

/**
 * Search parameters that cannot be evaluated here and are left to the upstream, also for a limited caller: what they
 * ask is about each resource alone, and every resource that comes back is judged. A chain is none of them: it would
 * tell of other resources (docs/decisions/0177-search-parameters-left-to-the-upstream.md).
 */
export type IsForUpstream = (type: string, name: string) => boolean

/** With the parameters of the site (`Patient.mrn`, or `mrn` for every type) that it says are such. */
export function createForUpstream(ofSite: readonly string[]): IsForUpstream {
  const sites = new Set(ofSite)
  return (type, name) => {
    const [code = '', modifier, ...more] = name.split(':')
    if (more.length > 0 || code.includes('.')) return false
    if (code.startsWith('_')) return modifier === undefined && OF_CONTENT.has(code)
    const parameter = findSearchParameter(type, code)
    if (parameter) return modifier !== undefined && (MODIFIERS[parameter.type]?.has(modifier) ?? false)
    if (isComposite(type, code)) return modifier === undefined
    const isOfSite = sites.has(code) || sites.has(`${type}.${code}`)
    return isOfSite && (modifier === undefined || SITE_MODIFIERS.has(modifier))
  }
}

// `_list` is looked up before (chains.ts). Others with an underscore may steer the upstream (`_getpages`), or hold chains (`_filter`).
const OF_CONTENT: ReadonlySet<string> = new Set(['_text', '_content', '_list'])

const OF_TOKENS = ['in', 'not-in', 'of-type', 'above', 'below', 'code-text', 'text-advanced']

// R4 search.html#modifiers and those of R5. On a reference, `:above` and `:below` look into what it refers to.
const MODIFIERS: Readonly<Record<string, ReadonlySet<string>>> = {
  token: new Set(OF_TOKENS),
  string: new Set(['text']),
}
const SITE_MODIFIERS: ReadonlySet<string> = new Set([
  ...OF_TOKENS,
  'exact',
  'contains',
  'missing',
  'not',
  'text',
])

// The composite and special parameters of R4.
const COMPOSITES: Readonly<Record<string, readonly string[]>> = {
  DocumentReference: ['relationship'],
  Group: ['characteristic-value'],
  Location: ['near'],
  MolecularSequence: [
    'chromosome-variant-coordinate',
    'chromosome-window-coordinate',
    'referenceseqid-variant-coordinate',
    'referenceseqid-window-coordinate',
  ],
  Observation: [
    'code-value-concept',
    'code-value-date',
    'code-value-quantity',
    'code-value-string',
    'combo-code-value-concept',
    'combo-code-value-quantity',
    'component-code-value-concept',
    'component-code-value-quantity',
  ],
}

function isComposite(type: string, code: string): boolean {
  if (code === 'context-type-quantity' || code === 'context-type-value')
    return findSearchParameter(type, 'context-type') !== undefined
  return COMPOSITES[type]?.includes(code) ?? false
}
