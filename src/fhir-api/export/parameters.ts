import { isFailure, isRecord } from '../../core/index.ts'
import {
  describeFailed,
  type FhirProblem,
  failFor,
  findSearchExcess,
  isResourceType,
  type Params,
  parseDateRange,
  parseParams,
  parseReference,
  parseSearch,
  SearchSteps,
  toPlain,
  type Work,
} from '../../fhir/index.ts'
import type { ExportLevel, ExportOrder, TypeFilter } from '../exports.ts'
import type { FhirRequest, Operation } from '../request.ts'
import { EXPORT_FILTERS, EXPORT_PATIENTS } from './limits.ts'

/** A parameter as it was sent. */
interface Sent {
  readonly name: string
  readonly text: string
  readonly isReference: boolean
  readonly isPosted: boolean
}

/** What the client asks for. */
export interface WantedExport
  extends Pick<
    ExportOrder,
    | 'since'
    | 'until'
    | 'filters'
    | 'elements'
    | 'notes'
    | 'isOnlyPatients'
    | 'provenance'
    | 'isByPatient'
    | 'isPartial'
  > {
  /** In the order sent; undefined without `_type`. */
  readonly types: readonly string[] | undefined
  readonly patients: readonly string[] | undefined
}

interface Reading {
  readonly level: ExportLevel
  readonly baseUrl: string
  readonly work: Work
}

type ReadParameter = (sent: readonly Sent[], reading: Reading) => Partial<WantedExport> | FhirProblem

const FORMATS = ['application/fhir+ndjson', 'application/ndjson', 'ndjson']

/** The parameters of the kick-off (Bulk Data Access 3.0.0, Query Parameters). */
const PARAMETERS: ReadonlyMap<string, ReadParameter> = new Map<string, ReadParameter>([
  ['_outputFormat', readFormat],
  ['_since', sent => readTime(sent, since => ({ since }))],
  ['_until', sent => readTime(sent, until => ({ until }))],
  ['_type', readTypes],
  ['_typeFilter', readFilters],
  ['_elements', readElements],
  ['patient', readPatients],
  ['includeAssociatedData', readAssociated],
  ['organizeOutputBy', sent => readOne(sent, 'the type Patient', readOrganized)],
  ['allowPartialManifests', sent => readOne(sent, 'true or false', text => PARTIAL.get(text))],
  // R4 http.html#parameters: they are about the response to the kick-off, which has no body.
  ['_format', () => ({})],
  ['_pretty', () => ({})],
])

const PARTIAL: ReadonlyMap<string, Partial<WantedExport>> = new Map<string, Partial<WantedExport>>([
  ['true', { isPartial: true }],
  ['false', {}],
])

/** Only the Patient compartment says which resources belong together. */
function readOrganized(text: string): Partial<WantedExport> | undefined {
  return text === 'Patient' ? { isByPatient: true } : undefined
}

/**
 * Reads the parameters of a kick-off. One that is not supported or wrong is refused or, if the client is lenient, left out
 * and noted.
 */
export function readParameters(
  { interaction, body, preferences, work }: FhirRequest<Operation>,
  reading: Omit<Reading, 'work'>,
): WantedExport | FhirProblem {
  const posted = readPosted(body)
  if (isFailure(posted)) return posted
  const sent = [
    ...interaction.params.map(([name, text]) => ({ name, text, isReference: false, isPosted: false })),
    ...posted,
  ]
  let wanted: WantedExport = {
    types: undefined,
    patients: undefined,
    filters: [],
    elements: [],
    notes: [],
  }
  for (const [name, values] of Map.groupBy(sent, it => it.name)) {
    const read =
      PARAMETERS.get(name)?.(values, { ...reading, work }) ??
      failFor('export-parameter-unknown', { parameter: name })
    if (!isFailure(read)) wanted = { ...wanted, ...read }
    else if (!preferences.lenient) return read
    else wanted = { ...wanted, notes: [...wanted.notes, describeProblem(read)] }
  }
  return wanted
}

/** The sentence of a problem of an export. */
export function describeProblem(problem: FhirProblem): string {
  return problem.reason === 'invalid-resource' || problem.reason === 'refused'
    ? 'A parameter is not valid'
    : describeFailed(problem)
}

/** The parameters of the body (R4 parameters.html). */
function readPosted(body: unknown): readonly Sent[] | FhirProblem {
  if (body === undefined) return []
  const posted = toPlain(body)
  const { resourceType, parameter = [] } = isRecord(posted) ? posted : {}
  if (resourceType !== 'Parameters' || !Array.isArray(parameter)) return UNREADABLE
  const sent = parameter.flatMap(it => readSent(it) ?? [])
  return sent.length === parameter.length ? (findExcess(sent) ?? sent) : UNREADABLE
}

/** The parameters of a body are limited like those of a query: the patients by their number, all others by their text. */
function findExcess(sent: readonly Sent[]): FhirProblem | undefined {
  const [patients = [], others = []] = [true, false].map(it =>
    sent.filter(({ isReference }) => isReference === it),
  )
  if (patients.length > EXPORT_PATIENTS)
    return failMalformed({ name: 'patient' }, `no more than ${EXPORT_PATIENTS} patients`)
  const excess = findSearchExcess(others.map(({ name, text }) => `${name}=${text}`).join('&'))
  return excess && failFor(excess.reason, { part: 'body', most: excess.most })
}

const UNREADABLE = failFor('body-not-parameters')

function readSent(parameter: unknown): Sent | undefined {
  if (!isRecord(parameter)) return undefined
  const { name, valueReference, ...rest } = parameter
  if (typeof name !== 'string') return undefined
  const reference = isRecord(valueReference) ? valueReference.reference : undefined
  if (typeof reference === 'string') return { name, text: reference, isReference: true, isPosted: true }
  const [value] = Object.entries(rest).flatMap(([member, it]) => (member.startsWith('value') ? [it] : []))
  const isPlain = typeof value === 'string' || typeof value === 'boolean'
  return isPlain ? { name, text: String(value), isReference: false, isPosted: true } : undefined
}

function failMalformed({ name }: Pick<Sent, 'name'>, expected: string): FhirProblem {
  return failFor('export-parameter-malformed', { parameter: name, expected })
}

function readOne(
  sent: readonly Sent[],
  expected: string,
  read: (text: string) => Partial<WantedExport> | undefined,
): Partial<WantedExport> | FhirProblem {
  const [only = NOTHING, ...more] = sent
  return (more.length === 0 ? read(only.text) : undefined) ?? failMalformed(only, expected)
}

const NOTHING: Sent = { name: '', text: '', isReference: false, isPosted: false }

function readFormat(sent: readonly Sent[]): Partial<WantedExport> | FhirProblem {
  // A plus sign that was not percent-encoded is decoded as a space.
  return readOne(sent, `one of ${FORMATS.join(', ')}`, text =>
    FORMATS.includes(text.replace(' ', '+')) ? {} : undefined,
  )
}

function readTime(
  sent: readonly Sent[],
  use: (time: number) => Partial<WantedExport>,
): Partial<WantedExport> | FhirProblem {
  return readOne(sent, 'one instant, such as 2026-01-31T12:00:00Z', text => {
    // A plus sign of a zone that was not percent-encoded is decoded as a space.
    const time = INSTANT.test(text) ? parseDateRange(text.replace(' ', '+')) : undefined
    return time && use(time.low)
  })
}

// R4 datatypes.html#instant
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+ -]\d\d:\d\d)$/

/** A repeated parameter equals a comma list. */
function listValues(sent: readonly Sent[]): readonly string[] {
  const values = sent.flatMap(({ text }) => text.split(',')).map(it => it.trim())
  return [...new Set(values.filter(it => it !== ''))]
}

function readTypes(sent: readonly Sent[]): Partial<WantedExport> | FhirProblem {
  const types = listValues(sent)
  return types.length > 0 && types.every(isResourceType)
    ? { types }
    : failMalformed({ name: '_type' }, 'resource types of FHIR R4, separated by commas')
}

function readElements(sent: readonly Sent[]): Partial<WantedExport> | FhirProblem {
  const elements = listValues(sent)
  return elements.every(it => ELEMENT.test(it))
    ? { elements }
    : failMalformed({ name: '_elements' }, 'root elements, such as id or Patient.id')
}

const ELEMENT = /^(?:[A-Z][A-Za-z]*\.)?[a-z][A-Za-z]*$/

function readPatients(
  sent: readonly Sent[],
  { level, baseUrl }: Reading,
): Partial<WantedExport> | FhirProblem {
  if (level === 'system') return failFor('export-parameter-unknown', { parameter: 'patient' })
  const patients = sent.map(({ text, isReference, isPosted }) => {
    const reference = isReference && isPosted ? parseReference(text, baseUrl) : undefined
    return reference?.type === 'Patient' ? reference.id : undefined
  })
  const known = patients.filter(it => it !== undefined)
  return known.length === patients.length
    ? { patients: [...new Set(known)], isOnlyPatients: true }
    : failMalformed({ name: 'patient' }, 'references to patients (valueReference) in the body of a POST')
}

function readAssociated(sent: readonly Sent[]): Partial<WantedExport> | FhirProblem {
  const wanted = listValues(sent).map(it => ASSOCIATED.get(it))
  if (wanted.length === 0 || wanted.includes(undefined))
    return failMalformed({ name: 'includeAssociatedData' }, [...ASSOCIATED.keys()].join(' or '))
  // The least restrictive value applies.
  return { provenance: wanted.includes('relevant') ? 'relevant' : 'latest' }
}

const ASSOCIATED: ReadonlyMap<string, 'latest' | 'relevant'> = new Map([
  ['LatestProvenanceResources', 'latest'],
  ['RelevantProvenanceResources', 'relevant'],
])

/** Each is a search of one type, by parameters that the content of a resource decides. */
function readFilters(sent: readonly Sent[], { baseUrl, work }: Reading): Partial<WantedExport> | FhirProblem {
  const filters: TypeFilter[] = []
  // They are evaluated together, on every row.
  const steps = new SearchSteps(work)
  for (const { text } of sent) {
    const filter = parseFilter(text, baseUrl, steps)
    if (!filter) return failFor('export-filter-unsupported', { filter: describeFilter(text) })
    filters.push(filter)
  }
  return filters.length <= EXPORT_FILTERS
    ? { filters }
    : failMalformed({ name: '_typeFilter' }, `no more than ${EXPORT_FILTERS} queries`)
}

/** Without the values, which may identify a person. */
function describeFilter(text: string): string {
  const [, type, query = ''] = /^(\w{1,40})\?(.*)$/.exec(text) ?? []
  if (type === undefined) return 'a query without a resource type'
  const names = parseParams(query)?.map(([name]) => name) ?? []
  return `${type}?${names.filter(name => NAME.test(name)).join('&')}`
}

const NAME = /^[\w:.-]{1,80}$/

function parseFilter(text: string, baseUrl: string, steps: SearchSteps): TypeFilter | undefined {
  const at = text.indexOf('?')
  const type = at < 0 ? text : text.slice(0, at)
  const params = at < 0 ? undefined : parseParams(text.slice(at + 1))
  if (!isResourceType(type) || !params || params.length === 0) return undefined
  return params.every(pair => isEvaluable(type, pair, baseUrl, steps)) ? { type, params } : undefined
}

function isEvaluable(
  type: string,
  [name, value]: Params[number],
  baseUrl: string,
  steps: SearchSteps,
): boolean {
  const clause = parseSearch(type, name, value, baseUrl, steps)
  return !isFailure(clause) && clause.kind !== 'chain' && clause.kind !== 'has'
}
