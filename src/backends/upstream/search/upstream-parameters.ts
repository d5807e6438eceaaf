import { findSearchParameter } from '../../../fhir/index.ts'

/**
 * Whether a search parameter that the gateway cannot evaluate is left to the upstream, also for a limited caller: it
 * depends on each resource alone, and every returned resource is checked. A chain would reveal other resources
 * (docs/decisions/0177-search-parameters-left-to-the-upstream.md).
 */
export type IsUpstreamParameter = (type: string, name: string) => boolean

/** With the site's own parameters: `Patient.mrn`, or `mrn` for every type. */
export function createUpstreamParameters(ofSite: readonly string[]): IsUpstreamParameter {
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

// `_list` is resolved before (chains.ts). Others may control the upstream (`_getpages`), or contain chains (`_filter`).
const OF_CONTENT: ReadonlySet<string> = new Set(['_text', '_content', '_list'])

const OF_TOKENS = ['in', 'not-in', 'of-type', 'above', 'below', 'code-text', 'text-advanced']

// R4 search.html#modifiers and those of R5. On a reference, `:above` and `:below` read its target.
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
