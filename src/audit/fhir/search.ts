import {
  type AnyProblem,
  type BadSearch,
  fail,
  findCompartmentPatients,
  isProblem,
  matchesClause,
  type Params,
  parseQuery,
  type Query,
  type Resource,
  type SearchClause,
  shapeResource,
} from '../../fhir/index.ts'
import type { AccessFilter, FindPanelMembership } from '../../smart/index.ts'
import type { Store } from '../../store/index.ts'
import { type FindOptions, findRecords, type RecordFilter, type TrailPosition } from '../trail/find.ts'
import { createPatientCache, isShown } from './is-shown.ts'
import { toAuditEvent } from './to-audit-event.ts'

export interface AuditSearch<P> {
  readonly params: Params
  /** `Patient/[id]/AuditEvent` */
  readonly compartment: string | undefined
  readonly filter: AccessFilter
  readonly panelMembers: FindPanelMembership<P>
  readonly lenient: boolean
  readonly fhirBaseUrl: string
}

const PAGE = '_page'
const CHUNK = 500
/** Records that one request reads; the rest follows the next link. */
const LOOKED_AT = 20_000

/**
 * The database filters by date, patient and access. Each record is then checked as the AuditEvent it becomes, with
 * the same search and access rules as any resource.
 */
export async function searchAudit<P extends AnyProblem>(
  store: Store,
  search: AuditSearch<P>,
): Promise<Resource | BadSearch | P> {
  const { params, lenient, fhirBaseUrl, compartment } = search
  const place = placeOf(params)
  if (place === 'unreadable') return bad('Cannot read page: use the link unchanged')
  const asked = params.filter(([name]) => name !== PAGE)
  const query = parseQuery(['AuditEvent'], asked, fhirBaseUrl, lenient)
  if (isProblem(query)) return query
  const order = orderOf(query)
  if (order === undefined) return bad('Cannot sort AuditEvents except by date')
  if (query.includes.length > 0) return bad('Cannot include resources with AuditEvents')
  const clauses = query.types.flatMap(type => type.clauses)
  if (clauses.some(clause => clause.kind === 'chain' || clause.kind === 'has'))
    return bad('Cannot follow a chain from AuditEvents')
  const address = `${fhirBaseUrl}/${compartment === undefined ? '' : `Patient/${compartment}/`}AuditEvent`
  const filter = { ...createFilter(clauses, search), order }
  const isCount = query.shape.summary === 'count' || query.count === 0
  const found = await collect(store, search, clauses, filter, isCount ? Infinity : query.count, place)
  return 'hits' in found ? bundleOf(address, query, found, isCount, place === undefined) : found
}

interface Collected {
  readonly hits: readonly Resource[]
  readonly next: TrailPosition | undefined
}

async function collect<P extends AnyProblem>(
  store: Store,
  { filter, panelMembers, compartment, fhirBaseUrl }: AuditSearch<P>,
  clauses: readonly SearchClause[],
  recordFilter: Omit<FindOptions, 'limit'>,
  wanted: number,
  from: TrailPosition | undefined,
): Promise<Collected | P> {
  const known = createPatientCache(filter, panelMembers)
  const hits: Resource[] = []
  let after = from
  let last = from
  const mostLookedAt = wanted === Infinity ? Infinity : LOOKED_AT
  for (let looked = 0; looked < mostLookedAt; looked += CHUNK) {
    const records = await findRecords(store, { ...recordFilter, after, limit: CHUNK })
    const problem = await known.learn(records)
    if (problem) return problem
    for (const record of records) {
      const resource = toAuditEvent(record)
      const matches =
        isShown(record, resource, filter, fhirBaseUrl, known) &&
        (compartment === undefined || findCompartmentPatients(resource, fhirBaseUrl).has(compartment)) &&
        clauses.every(clause => matchesClause(resource, clause, fhirBaseUrl) === true)
      if (matches && hits.length === wanted) return { hits, next: last }
      after = { at: record.at, id: record.id }
      if (!matches) continue
      hits.push(resource)
      // A link points to the last returned record, not to the last one read, which may concern any patient.
      last = after
    }
    if (records.length < CHUNK) return { hits, next: undefined }
  }
  return { hits, next: after }
}

function bundleOf(
  address: string,
  query: Query,
  { hits, next }: Collected,
  isCount: boolean,
  isFirst: boolean,
): Resource {
  const total = isCount || (isFirst && next === undefined) ? { total: hits.length } : {}
  const links = [
    { relation: 'self', url: addressOf(address, query.used) },
    ...(next && !isCount
      ? [{ relation: 'next', url: addressOf(address, [...query.used, [PAGE, `${next.at}.${next.id}`]]) }]
      : []),
  ]
  const entry = hits.map(hit => ({
    fullUrl: `${address.replace(/\/Patient\/[^/]+\/AuditEvent$/, '/AuditEvent')}/${hit.id}`,
    resource: shapeResource(hit, query.shape),
    search: { mode: 'match' },
  }))
  return {
    resourceType: 'Bundle',
    type: 'searchset',
    ...total,
    link: links,
    ...(!isCount && entry.length > 0 && { entry }),
  }
}

/** The database filter may return more records than the search matches, never fewer. */
function createFilter(
  clauses: readonly SearchClause[],
  { compartment, filter }: Pick<AuditSearch<never>, 'compartment' | 'filter'>,
): RecordFilter {
  const dates = clauses.flatMap(clause =>
    clause.kind === 'date' && DATES.has(clause.parameter) && clause.values.length === 1 ? clause.values : [],
  )
  const since = dates.flatMap(({ prefix, low }) => (LOWER.has(prefix) ? [low] : []))
  const before = dates.flatMap(({ prefix, high }) => (UPPER.has(prefix) ? [high + 1] : []))
  const patients = compartment === undefined ? patientsIn(clauses) : [compartment]
  const reached = filter === 'everything' ? undefined : filter.map(limit => limit.patient)
  const limited = reached?.every(patient => patient !== undefined) ? reached : undefined
  return {
    since: since.length > 0 ? Math.max(...since) : undefined,
    before: before.length > 0 ? Math.min(...before) : undefined,
    patients: patients ?? limited?.filter(patient => patient !== undefined),
  }
}

const DATES: ReadonlySet<string> = new Set(['date', '_lastUpdated'])
const LOWER: ReadonlySet<string> = new Set(['eq', 'gt', 'ge', 'sa'])
const UPPER: ReadonlySet<string> = new Set(['eq', 'lt', 'le', 'eb'])

function patientsIn(clauses: readonly SearchClause[]): readonly string[] | undefined {
  const clause = clauses.find(it => it.kind === 'reference' && it.parameter === 'patient')
  if (clause?.kind !== 'reference') return undefined
  return clause.values.flatMap(value => (value.kind === 'local' ? [value.id] : []))
}

function orderOf({ sort }: Query): 'newest' | 'oldest' | undefined {
  const [key, ...more] = sort
  if (!key) return 'newest'
  if (more.length > 0 || !DATES.has(key.parameter)) return undefined
  return key.descending ? 'newest' : 'oldest'
}

function placeOf(params: Params): TrailPosition | undefined | 'unreadable' {
  const [page, ...more] = params.filter(([name]) => name === PAGE)
  if (!page) return undefined
  const [, at, id] = /^(\d{1,15})\.(\d{1,15})$/.exec(page[1]) ?? []
  return at === undefined || id === undefined || more.length > 0
    ? 'unreadable'
    : { at: Number(at), id: Number(id) }
}

function addressOf(address: string, params: Params): string {
  const query = params.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
  return query.length === 0 ? address : `${address}?${query.join('&')}`
}

function bad(text: string): BadSearch {
  return fail({ problem: 'bad-search', code: 'not-supported', text })
}
