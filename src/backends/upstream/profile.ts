import { findSearchParameter } from '../../fhir/index.ts'

/**
 * How an upstream behaves where servers differ. The gateway relies on nothing in FHIR R4 that a server is known to do
 * differently without a trait here or a check of the response.
 */
export interface UpstreamProfile {
  /** Whether `GET Patient/[id]/[type]` works. If not, the gateway sends a search parameter. */
  readonly compartmentSearches: 'yes' | 'no' | 'as-stated'
  /**
   * The precondition of a PUT that must not overwrite: `If-None-Match: *` (RFC 9110), or `If-Match: W/"0"` in addition. A
   * server that honours `If-None-Match` refuses the second one for an absent resource. With `none`, a limited caller has to
   * use POST.
   */
  readonly createOnlyPut: 'if-none-match' | 'if-match-zero' | 'none'
  /**
   * How a DELETE is bound to the checked version: by `If-Match`, or by the version in its URL, and in a transaction by a
   * conditional delete with `_lastUpdated`. With `none` the gateway sends `If-Match`, and finds out afterwards what was deleted.
   */
  readonly boundDelete: 'if-match' | 'version-in-url' | 'none'
  /**
   * Whether the server reads dates of a year or month, quantities, modifiers and repeated parameters as R4 defines. If
   * not, the gateway sends ranges that are wider than the clauses of scopes, and evaluates the clauses itself.
   */
  readonly exactSearches: boolean
  /** Whether searches are answered from earlier results. The gateway sends `Cache-Control: no-cache` in any case. */
  readonly cachedSearches: boolean
  /**
   * Whether `_offset` gives pages of fresh results that the server does not store, each with a link unless it is the last. The
   * gateway tries it in any case for searches that must not be stored.
   */
  readonly pagesByOffset: boolean
  /** Whether a history ends after the number of versions that it had up to a minute ago, unless the request has `_since`. */
  readonly cachedHistories: boolean
  /** The number of included resources after which the server ends, without saying so. */
  readonly mostIncludes: number
  /** Whether only the last page of a search has no link to a next page. If not, the gateway requests a total as well. */
  readonly linksEveryPage: boolean
  /** Whether resources with equal sort keys have the same order in every search. If not, the gateway also sorts by id where it composes pages. */
  readonly stableOrder: boolean
}

/** A server that behaves as R4 defines. */
const STRICT: UpstreamProfile = {
  compartmentSearches: 'as-stated',
  createOnlyPut: 'if-none-match',
  boundDelete: 'if-match',
  exactSearches: true,
  cachedSearches: false,
  pagesByOffset: false,
  cachedHistories: false,
  mostIncludes: Number.POSITIVE_INFINITY,
  linksEveryPage: true,
  stableOrder: true,
}

/** HAPI FHIR JPA with its default settings (measured with 8.8.0). */
const HAPI: UpstreamProfile = {
  compartmentSearches: 'no',
  createOnlyPut: 'if-match-zero',
  boundDelete: 'version-in-url',
  exactSearches: false,
  cachedSearches: true,
  pagesByOffset: true,
  cachedHistories: true,
  mostIncludes: 1_000,
  linksEveryPage: false,
  stableOrder: false,
}

/** A server of which only one thing is known: `If-None-Match: *` protects a resource from a PUT that creates. */
const IF_NONE_MATCH: UpstreamProfile = {
  ...HAPI,
  compartmentSearches: 'as-stated',
  createOnlyPut: 'if-none-match',
  boundDelete: 'none',
  pagesByOffset: false,
}

/** An unknown server: a PUT may overwrite a resource, whatever its preconditions are. */
const POST_ONLY: UpstreamProfile = { ...IF_NONE_MATCH, createOnlyPut: 'none' }

const PROFILES = {
  hapi: HAPI,
  'if-none-match': IF_NONE_MATCH,
  'post-only': POST_ONLY,
  strict: STRICT,
} as const

export type ProfileName = 'auto' | keyof typeof PROFILES

/** The profile in use, and why. */
export interface ChosenProfile {
  readonly name: keyof typeof PROFILES
  readonly reason: string
  readonly traits: UpstreamProfile
}

/** The profile of a setting. `auto` is `hapi` for a server with a sign of HAPI (recognition.ts), and `post-only` for any other. */
export function chooseProfile(setting: ProfileName, sign: string | undefined): ChosenProfile {
  if (setting !== 'auto') return choose(setting, 'set by smart.fhir.upstream-profile')
  return sign === undefined
    ? choose('post-only', 'nothing shows that a PUT of this server cannot overwrite')
    : choose('hapi', `recognized by ${sign}`)
}

function choose(name: ChosenProfile['name'], reason: string): ChosenProfile {
  return { name, reason, traits: PROFILES[name] }
}

export function describeProfile({ name, reason }: ChosenProfile): string {
  return `profile ${name}: ${reason}`
}

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
