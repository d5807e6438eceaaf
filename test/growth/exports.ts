/**
 * The functions of the code that walk what a client sends, and inputs for each. They are found by their exports: one
 * that is not named here fails.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ANY_ENTRIES } from '../../src/fhir/body-limits.ts'
import { BATCH_ENTRIES } from '../../src/fhir/limits.ts'
import { findEntryExcess, parseEntries, parseEntry } from '../../src/fhir/parse-entries.ts'
import { findMethods, parseInteraction } from '../../src/fhir/parse-interaction.ts'
import { applyPatch, findFhirPathWrittenParts, readsStored } from '../../src/fhir/patch/apply-patch.ts'
import type { Resource } from '../../src/fhir/resource.ts'
import { parseHistory } from '../../src/fhir/search/parse-history.ts'
import { parseQuery } from '../../src/fhir/search/parse-query.ts'
import { parseSearch, SearchSteps } from '../../src/fhir/search/parse-search.ts'
import { runAtOnce, Work } from '../../src/fhir/work.ts'
import {
  checkRequest,
  collectPatchedParts,
  readEntries,
} from '../../src/interceptor/decision/check-request.ts'
import { decide } from '../../src/interceptor/decision/decide.ts'
import { policy } from '../../src/interceptor/testing/decide-request.ts'
import {
  computeAccess,
  findScopeListFault,
  type Grant,
  grantFingerprint,
  isWritable,
  parsePolicy,
  parseScope,
  parseScopes,
  satisfies,
  suggestScope,
  suggestType,
} from '../../src/smart/index.ts'
import type { Family, Job } from './measure.ts'
import { PATCHES } from './patches.ts'

const BASE = policy.fhirBaseUrl

/** The modules whose exports have inputs. */
const MODULES = [
  ...list('src/fhir/patch', /^apply-/),
  ...list('src/interceptor/decision', /^(?:check|decide)/),
  ...list('src/smart', /./),
  ...list('src/fhir', /^parse-/),
  ...list('src/fhir/search', /^parse-(?!clause)/),
]

function list(folder: string, name: RegExp): readonly string[] {
  const root = join(import.meta.dirname, '../..', folder)
  return readdirSync(root)
    .filter(it => it.endsWith('.ts') && !it.endsWith('.test.ts') && it !== 'index.ts' && name.test(it))
    .map(it => join(root, it))
}

/** The names of all functions that these modules export. */
export async function listFunctions(): Promise<readonly string[]> {
  const modules = await Promise.all(MODULES.map(it => import(it) as Promise<object>))
  return modules.flatMap(it =>
    Object.entries(it).flatMap(([name, value]) => (typeof value === 'function' ? [name] : [])),
  )
}

type Jobs = readonly Family<Job>[]

export function onTexts(families: readonly Family<string>[], work: (text: string) => unknown): Jobs {
  return families.map(({ name, make }) => ({
    name,
    make: size => {
      const text = make(size)
      return { characters: text.length, run: () => work(text) }
    },
  }))
}

export function onValues<T>(families: readonly Family<T>[], work: (value: T) => unknown): Jobs {
  return families.map(({ name, make }) => ({
    name,
    make: size => {
      const value = make(size)
      return { characters: JSON.stringify(value).length, run: () => work(value) }
    },
  }))
}

const repeat = (size: number, text: (at: number) => string, separator: string) =>
  Array.from({ length: Math.ceil(size) }, (_, at) => text(at)).join(separator)

const SCOPES: readonly Family<string>[] = [
  { name: 'one scope', make: size => repeat(size / 8, () => 'patient/Observation.rs', ' ') },
  {
    name: 'granular scopes',
    make: size => repeat(size / 8, at => `patient/Observation.rs?category=c${at}`, ' '),
  },
  {
    name: 'parameters of a scope',
    make: size => `patient/Observation.rs?${repeat(size / 8, at => `category=c${at}`, '&')}`,
  },
  {
    name: 'one parameter of a scope again',
    make: size => `patient/Observation.rs?${repeat(size / 8, () => 'category=c', '&')}`,
  },
  { name: 'a long value', make: size => `patient/Observation.rs?code=${'x'.repeat(size)}` },
  { name: 'values', make: size => `patient/Observation.rs?code=${repeat(size / 8, at => `c${at}`, ',')}` },
  { name: 'percent signs', make: size => `patient/Observation.rs?code=${'%'.repeat(size)}` },
  { name: 'spaces', make: size => ' '.repeat(size) },
  { name: 'unknown scopes', make: size => repeat(size / 8, at => `unknown-${at}`, ' ') },
]

/** Queries that a decision or the parser of a search walks. */
const QUERIES: readonly Family<string>[] = [
  { name: 'values', make: size => `code=${repeat(size, at => `c${at}`, ',')}` },
  { name: 'a long value', make: size => `code=${'x'.repeat(size * 10)}` },
  { name: 'escaped separators', make: size => `code=${'\\,'.repeat(size * 5)}` },
  { name: 'parameters', make: size => repeat(size, at => `code=c${at}`, '&') },
  { name: 'unknown parameters', make: size => repeat(size, at => `p${at}=x`, '&') },
  { name: 'chains', make: size => repeat(size, () => 'subject:Patient.name=x', '&') },
  { name: 'chains to all types', make: size => repeat(size, () => 'focus._id=x', '&') },
  { name: 'links of a chain', make: size => `${repeat(size, () => 'derived-from:Observation', '.')}.code=x` },
  { name: '_has', make: size => repeat(size, () => '_has:Observation:derived-from:code=x', '&') },
  {
    name: '_has in _has',
    make: size => `${repeat(size, () => '_has:Observation:derived-from', ':')}:code=x`,
  },
  { name: 'includes', make: size => repeat(size, () => '_include=Observation:subject', '&') },
  { name: 'includes of everything', make: size => repeat(size, () => '_include=*&_revinclude=*', '&') },
  { name: 'types', make: size => `_type=${repeat(size, () => 'Observation', ',')}` },
  { name: 'sort keys', make: size => `_sort=${repeat(size, () => 'date', ',')}` },
  { name: 'elements', make: size => `_elements=${repeat(size, at => `e${at}`, ',')}` },
  { name: 'percent signs', make: size => `code=${'%'.repeat(size * 10)}` },
]

const parseUrl = (query: string) => parseEntry({ method: 'GET', url: `Observation?${query}` }, BASE)

function readParams(query: string): readonly (readonly [string, string])[] {
  return query.split('&').map(pair => {
    const at = pair.indexOf('=')
    return [pair.slice(0, at), pair.slice(at + 1)]
  })
}

/** All parameters of a search share its steps. */
function parseAll(query: string): unknown {
  const steps = new SearchSteps(new Work())
  return readParams(query).map(([name, value]) => parseSearch('Observation', name, value, BASE, steps))
}

const makeGrant = (scope: string): Grant => ({ scopes: parseScopes(scope), patient: 'p', clientId: 'c' })

const GRANTS = {
  everything: makeGrant('system/*.cruds'),
  'one type': makeGrant('patient/Observation.cruds patient/List.rs'),
  'many granular scopes': makeGrant(repeat(100, at => `patient/Observation.rs?category=c${at}`, ' ')),
}

const observation = (at: number) => ({
  resourceType: 'Observation',
  id: `o${at}`,
  subject: { reference: 'Patient/p' },
})

type MakeEntry = (at: number, size: number) => object

const CHAINS = `List?${repeat(16, () => 'item._id=x', '&')}`

const ENTRIES: Readonly<Record<string, MakeEntry>> = {
  reads: at => ({ request: { method: 'GET', url: `Observation/${at}` } }),
  searches: () => ({ request: { method: 'GET', url: 'Observation?code=x' } }),
  'chains to all types': () => ({ request: { method: 'GET', url: CHAINS } }),
  'reverse chains': () => ({ request: { method: 'GET', url: 'Patient?_has:Observation:subject:code=x' } }),
  includes: () => ({ request: { method: 'GET', url: 'Observation?_include=*&_revinclude=*' } }),
  creates: at => ({
    fullUrl: `urn:uuid:${at}`,
    resource: { ...observation(at), hasMember: [{ reference: `urn:uuid:${at + 1}` }] },
    request: { method: 'POST', url: 'Observation', ifNoneExist: `identifier=${at}` },
  }),
  updates: at => ({
    fullUrl: `urn:uuid:${at}`,
    resource: observation(at),
    request: { method: 'PUT', url: `Observation/o${at}` },
  }),
  patches: at => ({
    resource: {
      resourceType: 'Binary',
      contentType: 'application/json-patch+json',
      data: Buffer.from('[{"op":"add","path":"/note/0","value":{}}]').toString('base64'),
    },
    request: { method: 'PATCH', url: `Observation/${at}` },
  }),
}

const BUNDLES: readonly Family<object>[] = Object.entries(ENTRIES).flatMap(([name, make]) =>
  ['batch', 'transaction'].map(type => ({
    name: `${type}: ${name}`,
    make: (size: number) => {
      const length = Math.min(BATCH_ENTRIES, Math.ceil(size / 8))
      return { resourceType: 'Bundle', type, entry: Array.from({ length }, (_, at) => make(at, size)) }
    },
  })),
)

const forEachGrant = (make: (grant: Grant) => Jobs): Jobs =>
  Object.entries(GRANTS).flatMap(([name, grant]) =>
    make(grant).map(it => ({ ...it, name: `${it.name}, ${name}` })),
  )

const POLICIES: readonly Family<unknown>[] = [
  {
    name: 'rules',
    make: size => ({
      rules: Array.from({ length: size }, (_, at) => ({ practitioners: [`p${at}`], patients: [`${at}`] })),
    }),
  },
  {
    name: 'patients of a rule',
    make: size => ({
      rules: [{ practitioners: ['p'], patients: Array.from({ length: size }, (_, at) => `${at}`) }],
    }),
  },
  {
    name: 'unknown members',
    make: size => Object.fromEntries(Array.from({ length: size }, (_, at) => [`m${at}`, at])),
  },
]

const RESOURCES: readonly Family<Resource>[] = [
  {
    name: 'references to the patient',
    make: size => ({ ...observation(0), performer: Array(size).fill({ reference: 'Patient/p' }) }),
  },
  {
    name: 'references to other patients',
    make: size => ({
      ...observation(0),
      performer: Array.from({ length: size }, (_, at) => ({ reference: `Patient/${at}` })),
    }),
  },
  {
    name: 'categories',
    make: size => ({
      ...observation(0),
      category: [{ coding: Array.from({ length: size }, (_, at) => ({ system: 'urn:x', code: `x${at}` })) }],
    }),
  },
  {
    name: 'contained patients',
    make: size => ({
      ...observation(0),
      contained: Array.from({ length: size }, (_, at) => ({ resourceType: 'Patient', id: `${at}` })),
    }),
  },
]

const filterOf = (grant: Grant, permission: 'r' | 'c') =>
  computeAccess(grant, policy).filterFor('Observation', permission)

/** By the name of the function. */
export const INPUTS: Readonly<Record<string, Jobs>> = {
  applyPatch: onValues(PATCHES, ({ resource, patch }) => applyPatch(resource, patch, new Work())),
  readsStored: onValues(PATCHES, ({ patch }) => readsStored(patch)),
  findFhirPathWrittenParts: onValues(PATCHES, ({ patch }) => findFhirPathWrittenParts(patch, 'Observation')),
  collectPatchedParts: onValues(PATCHES, ({ patch }) => collectPatchedParts(patch, 'Observation')),
  parseScopes: onTexts(SCOPES, parseScopes),
  parseScope: onTexts(SCOPES, parseScope),
  suggestScope: onTexts(SCOPES, suggestScope),
  suggestType: onTexts(SCOPES, suggestType),
  findScopeListFault: onTexts(SCOPES, findScopeListFault),
  computeAccess: onTexts(SCOPES, scope => {
    const access = computeAccess(makeGrant(scope), policy)
    return ['Observation', 'Patient'].map(type => access.explainFilter(type, 's'))
  }),
  grantFingerprint: onTexts(SCOPES, scope => grantFingerprint(makeGrant(scope))),
  parsePolicy: onValues(POLICIES, parsePolicy),
  parseInteraction: onTexts(QUERIES, query =>
    parseInteraction({ method: 'GET', path: '/Observation', query, headers: {}, baseUrl: BASE }),
  ),
  findMethods: onTexts(QUERIES, query =>
    findMethods({ path: '/Observation', query, headers: {}, baseUrl: BASE }),
  ),
  parseEntry: onTexts(QUERIES, parseUrl),
  parseEntries: onValues(BUNDLES, it => runAtOnce(parseEntries(it, BASE, new Work(), ANY_ENTRIES))),
  findEntryExcess: onValues(BUNDLES, it => findEntryExcess(it, ANY_ENTRIES)),
  parseHistory: onTexts(QUERIES, query => parseHistory(readParams(query), false)),
  parseQuery: onTexts(QUERIES, query =>
    parseQuery(['Observation'], readParams(query), { baseUrl: BASE, lenient: false, work: new Work() }),
  ),
  parseSearch: onTexts(QUERIES, query => parseAll(query)),
  decide: [
    ...forEachGrant(grant =>
      onTexts(QUERIES, query => {
        const interaction = parseUrl(query)
        return interaction.kind === 'misunderstood' || decide(interaction, grant, policy)
      }),
    ),
    ...onTexts(SCOPES, scope => decide({ kind: 'history-system', params: [] }, makeGrant(scope), policy)),
  ],
  checkRequest: forEachGrant(grant =>
    onValues(BUNDLES, it => checkRequest({ kind: 'bundle' }, it, grant, policy)),
  ),
  satisfies: forEachGrant(grant => onValues(RESOURCES, it => satisfies(it, filterOf(grant, 'r'), BASE))),
  isWritable: forEachGrant(grant => onValues(RESOURCES, it => isWritable(it, filterOf(grant, 'c'), BASE))),
  readEntries: forEachGrant(grant =>
    onValues(BUNDLES, it => readEntries(it, BASE, grant, computeAccess(grant, policy), new Work())),
  ),
}

/** Functions that the functions above call, and functions of single values, such as a type. */
export const CALLED: ReadonlySet<string> = new Set([
  'checkChains',
  'checkType',
  'deny',
  'describeInsufficientScope',
  'isChained',
  'nameOthers',
  'requireEach',
  'failAt',
  'findPatientConstraint',
  'getImpliedKeys',
  'getQueryKey',
  'groupConstraints',
  'hasCompartment',
  'isOfNamedOnly',
  'isUnconditional',
  'seesAll',
  'narrow',
  'uniteConstraints',
  'isClinician',
  'mergeValues',
  'checkPatch',
  'failAt',
  'failHidden',
  'findUpdateConflict',
  'grantsBinary',
  'mayRevealAbsence',
  'isProtected',
  'isRelationProtected',
  'createUserFilter',
  'failPolicy',
  'findPolicyMatches',
  'formatPolicyProblem',
  'givesAccessByCareTeam',
  'namesPatients',
  'hasTooManyCombined',
  'permits',
  'SearchSteps',
  'createHostWork',
  'parseUncounted',
])
