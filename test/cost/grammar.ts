/**
 * Requests that are made from the grammar of FHIR's API: every type of search parameter with every prefix and modifier, and
 * every kind of entry of a Bundle. What else a request may vary in is drawn for each: how often it is repeated, how the
 * parameter is reached, the grant, the record, and the compression. Every run draws the same cases, and a thorough one more of
 * them. The seed is in the name of each case: `COST_SEED=7 TEST_THOROUGH=1 npm test -- test/cost.test.ts` draws others.
 */
import { gzipSync } from 'node:zlib'
import { PARAMETER_WEIGHT, QUERY_VALUES } from '../../src/backends/sqlite/limits.ts'
import {
  limits,
  listSearchParameters,
  resourceTypes,
  type SearchParameterType,
} from '../../src/fhir/index.ts'
import type { MeasuredServers } from '../support/measured-servers.ts'
import type { Cases, MakeCase } from './cases.ts'
import { repeat } from './texts.ts'

const SEED = Number(process.env.COST_SEED ?? 1)

/** What costs too much does so before. */
const LEAVES_AFTER_MS = 60_000

type Draw = <T>(choices: readonly T[]) => T

/** Draws by a generator of Park and Miller, which needs no state but a number. */
function createDraw(seed: number): Draw {
  let state = (seed % 2_147_483_646) + 1
  return choices => {
    state = (state * 48_271) % 2_147_483_647
    const choice = choices[state % choices.length]
    if (choice === undefined) throw new Error('Cannot draw: there is nothing to choose from')
    return choice
  }
}

const PREFIXES = ['', 'eq', 'ne', 'gt', 'ge', 'lt', 'le', 'sa', 'eb', 'ap']

/** The values and the modifiers of each type of search parameter. */
const PARAMETERS: {
  readonly [T in SearchParameterType]: {
    readonly modifiers: readonly string[]
    readonly prefixes?: readonly string[]
    readonly value: (at: number) => string
  }
} = {
  token: { modifiers: ['', ':not', ':text', ':contains'], value: at => `urn:x|c${at}` },
  string: { modifiers: ['', ':exact', ':contains'], value: at => `name${at}` },
  reference: { modifiers: ['', ':Patient', ':identifier'], value: at => `p${at}` },
  uri: { modifiers: ['', ':below', ':above'], value: at => `http://x.example/${at}` },
  date: {
    modifiers: [''],
    prefixes: PREFIXES,
    value: at => `2017-07-${String((at % 28) + 1).padStart(2, '0')}`,
  },
  number: { modifiers: [''], prefixes: PREFIXES, value: at => String(at) },
  quantity: { modifiers: [''], prefixes: PREFIXES, value: at => `${at}||mg` },
  composite: { modifiers: [''], value: at => `urn:x|c${at}$${at}` },
  special: { modifiers: [''], value: at => String(at) },
}

const TYPES = Object.keys(PARAMETERS).filter(isParameterType)

function isParameterType(text: string): text is SearchParameterType {
  return text in PARAMETERS
}

/** Of Observations, of which the large record has many, if they have one of this type. */
function drawParameter(
  draw: Draw,
  kind: SearchParameterType,
): { readonly type: string; readonly code: string } {
  for (const type of ['Observation', ...resourceTypes]) {
    const found = listSearchParameters(type).filter(it => it.type === kind)
    if (found.length > 0) return { type, code: draw(found).code }
  }
  // None is supported: the search is refused.
  return { type: 'Observation', code: kind }
}

/** How a search reaches a parameter: on the resource, by a chain to one type or to all, or by `_has`. */
const FORMS: readonly ((type: string, code: string) => readonly [searched: string, name: string])[] = [
  (type, code) => [type, code],
  (type, code) => ['Observation', `focus:${type}.${code}`],
  (_type, code) => ['Observation', `focus.${code}`],
  (type, code) => {
    const references = listSearchParameters(type).filter(it => it.type === 'reference')
    const reference = references.find(it => it.target?.includes('Patient'))
    return ['Patient', `_has:${type}:${reference?.code ?? 'patient'}:${code}`]
  },
]

/** The values of one parameter, or the parameters: one, as many as the embedded server accepts, and more. */
const NUMBERS = {
  or: [1, QUERY_VALUES - PARAMETER_WEIGHT, limits.SEARCH_VALUES - 1],
  and: [1, QUERY_VALUES / (1 + PARAMETER_WEIGHT), limits.SEARCH_VALUES / 2],
}

const RECORDS = ['grown', 'large']

const SCOPES = {
  system: undefined,
  patient: 'patient/*.cruds',
  granular: [
    ...repeat(40, at => `patient/Observation.cruds?category=urn:x|c${at}`),
    'patient/Patient.rs',
  ].join(' '),
  'one granular': 'patient/Observation.cruds?category=urn:x|c1 patient/Patient.rs patient/List.cruds',
} as const

type GrantName = keyof typeof SCOPES

const GRANTS: readonly GrantName[] = ['system', 'patient', 'granular', 'one granular']

function authorize({ backEnd, otherIssuer, fhirUrl }: MeasuredServers, grant: GrantName, patient: string) {
  const scope = SCOPES[grant]
  if (scope === undefined) return backEnd
  return { authorization: `Bearer ${otherIssuer.issue(fhirUrl, { scope, patient })}` }
}

export function drawCases(): Cases {
  return { ...drawSearches(SEED), ...drawBundles(SEED) }
}

/** A search by every type of parameter, with every modifier and prefix. */
function drawSearches(seed: number): Cases {
  const draw = createDraw(seed)
  const cases = TYPES.flatMap(kind => {
    const { modifiers, prefixes = [''], value } = PARAMETERS[kind]
    return modifiers.flatMap(modifier =>
      prefixes.map(prefix => drawSearch(draw, kind, modifier, prefix, value)),
    )
  })
  return Object.fromEntries(cases.map(([name, make]) => [`${name} (seed ${seed})`, make]))
}

function drawSearch(
  draw: Draw,
  kind: SearchParameterType,
  modifier: string,
  prefix: string,
  value: (at: number) => string,
): readonly [string, MakeCase] {
  const { type, code } = drawParameter(draw, kind)
  const [searched, name] = draw(FORMS)(type, code + modifier)
  const [grant, record, joined] = [draw(GRANTS), draw(RECORDS), draw(['or', 'and'] as const)]
  const number = draw(NUMBERS[joined])
  const values = repeat(number, at => encodeURIComponent(prefix + value(at)))
  const criteria =
    joined === 'or' ? `${name}=${values.join(',')}` : values.map(it => `${name}=${it}`).join('&')
  const more = draw([
    '',
    '&_sort=-_lastUpdated',
    '&_total=accurate',
    '&_summary=count',
    `&_count=${limits.PAGE_RESOURCES}`,
  ])
  const form = (criteria + more).slice(0, limits.SEARCH_CHARACTERS)
  return [
    `${number} × ${searched}?${name}=${prefix}… joined by ${joined}${more}, ${grant}, ${record} record`,
    servers => ({
      url: `${servers.fhirUrl}/${searched}/_search`,
      method: 'POST',
      headers: { ...authorize(servers, grant, record), 'content-type': 'application/x-www-form-urlencoded' },
      body: form,
      leavesAfterMs: LEAVES_AFTER_MS,
    }),
  ]
}

const BINARY = (patch: string) => ({
  resourceType: 'Binary',
  contentType: 'application/json-patch+json',
  data: Buffer.from(patch).toString('base64'),
})
const PATCH = {
  resourceType: 'Parameters',
  parameter: [
    {
      name: 'operation',
      part: [
        { name: 'type', valueCode: 'replace' },
        { name: 'path', valueString: 'Observation.code.text' },
        { name: 'value', valueString: 'y' },
      ],
    },
  ],
}

type MakeEntry = (patient: string, at: number) => { readonly url: string; readonly [name: string]: unknown }

const observe = (patient: string) => ({
  resourceType: 'Observation',
  status: 'final',
  category: [{ coding: [{ system: 'urn:x', code: 'c1' }] }],
  code: { text: 'x' },
  subject: { reference: `Patient/${patient}` },
})
const listOf = (patient: string, at: number) => ({
  resourceType: 'List',
  status: 'current',
  mode: 'working',
  subject: { reference: `Patient/${patient}` },
  entry: repeat(9, it => String(it)).map(it => ({
    item: { reference: `Observation/large-${at % 100}${it}` },
  })),
})
const some = (name: string, value: string, times: number) => repeat(times, () => `${name}=${value}`).join('&')

/** Every kind of entry. The same resources are written and patched again, whatever the order of the cases. */
const ENTRIES: Readonly<Record<string, readonly [method: string, make: MakeEntry]>> = {
  read: ['GET', patient => ({ url: `Patient/${patient}` })],
  vread: ['GET', patient => ({ url: `Patient/${patient}/_history/1` })],
  history: ['GET', patient => ({ url: `Patient/${patient}/_history` })],
  'system history': ['GET', () => ({ url: '_history?_count=5' })],
  search: ['GET', (patient, at) => ({ url: `Observation?subject=${patient}&code=o${at}` })],
  'search by ids': ['GET', () => ({ url: `Condition?${some('_id', 'x', 400)}` })],
  'search by values': ['GET', () => ({ url: `Observation?${some('value-quantity', 'ap5', 90)}` })],
  'search by a chain': ['GET', () => ({ url: `List?${some('item._id', 'x', 16)}` })],
  'search by two links': ['GET', () => ({ url: `Observation?${some('focus.focus.identifier', 'x', 6)}` })],
  'search by _has': ['GET', () => ({ url: 'Patient?_has:Observation:patient:code=zzz' })],
  includes: ['GET', patient => ({ url: `Patient?_id=${patient}&_revinclude=Observation:subject` })],
  everything: ['GET', patient => ({ url: `Patient/${patient}/$everything?_count=5` })],
  lastn: ['GET', patient => ({ url: `Observation/$lastn?patient=${patient}&code=urn:x|o1` })],
  metadata: ['GET', () => ({ url: 'metadata' })],
  validate: ['POST', patient => ({ url: 'Observation/$validate', resource: observe(patient) })],
  create: ['POST', patient => ({ url: 'Observation', resource: observe(patient) })],
  'create with references': ['POST', (patient, at) => ({ url: 'List', resource: listOf(patient, at) })],
  'conditional create': [
    'POST',
    (patient, at) => ({
      url: 'Observation',
      ifNoneExist: `identifier=urn:x|${at}`,
      resource: observe(patient),
    }),
  ],
  'conditional reference': [
    'POST',
    (patient, at) => ({
      url: 'Observation',
      resource: { ...observe(patient), performer: [{ reference: `Practitioner?identifier=urn:x|${at}` }] },
    }),
  ],
  update: [
    'PUT',
    (patient, at) => ({ url: `Observation/put-${at}`, resource: { ...observe(patient), id: `put-${at}` } }),
  ],
  'conditional update': [
    'PUT',
    (patient, at) => ({ url: `Observation?identifier=urn:y|${at}`, resource: observe(patient) }),
  ],
  'JSON Patch': [
    'PATCH',
    (_patient, at) => ({
      url: `Observation/put-${at}`,
      resource: BINARY('[{"op":"replace","path":"/code/text","value":"z"}]'),
    }),
  ],
  'FHIRPath Patch': ['PATCH', (_patient, at) => ({ url: `Observation/put-${at}`, resource: PATCH })],
  'conditional patch': [
    'PATCH',
    (_patient, at) => ({ url: `Observation?identifier=urn:y|${at}`, resource: PATCH }),
  ],
  delete: ['DELETE', (_patient, at) => ({ url: `Observation/put-${at}` })],
  'conditional delete': ['DELETE', (_patient, at) => ({ url: `Observation?identifier=urn:y|${at}` })],
}

const MOST = { batch: limits.BATCH_ENTRIES, transaction: limits.TRANSACTION_ENTRIES }

/** A batch and a transaction of every kind of entry. */
function drawBundles(seed: number): Cases {
  const draw = createDraw(seed)
  const cases = Object.entries(ENTRIES).flatMap(([kind, entry]) =>
    (['batch', 'transaction'] as const).map(type => drawBundle(draw, kind, entry, type)),
  )
  return Object.fromEntries(cases.map(([name, make]) => [`${name} (seed ${seed})`, make]))
}

function drawBundle(
  draw: Draw,
  kind: string,
  [method, make]: (typeof ENTRIES)[string],
  type: 'batch' | 'transaction',
): readonly [string, MakeCase] {
  const [grant, record] = [draw(GRANTS), draw(RECORDS)]
  const [number, isCompressed] = [draw([MOST[type], 300, 30]), draw([true, false])]
  const entry = repeat(number, String).map((_, at) => {
    const { url, ifNoneExist, resource } = make(record, at)
    return { resource, request: { method, url, ifNoneExist } }
  })
  const text = JSON.stringify({ resourceType: 'Bundle', type, entry })
  return [
    `${type} of ${number} × ${kind}${isCompressed ? ', gzip' : ''}, ${grant}, ${record} record`,
    servers => ({
      url: servers.fhirUrl,
      method: 'POST',
      headers: {
        ...authorize(servers, grant, record),
        'content-type': 'application/fhir+json',
        ...(isCompressed && { 'content-encoding': 'gzip' }),
      },
      body: isCompressed ? gzipSync(text) : text,
      leavesAfterMs: LEAVES_AFTER_MS,
    }),
  ]
}
