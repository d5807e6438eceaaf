import { readFiledPatients } from '../../audit-record/index.ts'
import { isFailure } from '../../core/index.ts'
import {
  type AnyProblem,
  type BadSearch,
  failFor,
  matchesClause,
  type Params,
  parseQuery,
  type Query,
  type Resource,
  type SearchClause,
  shapeResource,
  type Work,
} from '../../fhir/index.ts'
import {
  type AccessFilter,
  type FindPanelMembership,
  type PanelMembership,
  satisfies,
} from '../../smart/index.ts'
import type { Store } from '../../store/index.ts'
import { type EventIds, openEventIds } from '../trail/event-ids.ts'
import { countRecords, findPage, type KeptRecord, type TrailPosition } from '../trail/find.ts'
import { toAuditEvent } from './to-audit-event.ts'
import { type DatabaseSearch, toDatabaseSearch } from './to-filter.ts'

interface AuditSearch<P> {
  readonly params: Params
  /** `Patient/[id]/AuditEvent` */
  readonly compartment: string | undefined
  readonly filter: AccessFilter
  readonly panelMembers: FindPanelMembership<P>
  readonly lenient: boolean
  readonly work: Work
  readonly fhirBaseUrl: string
}

const PAGE = '_page'

/** Values of all parameters of a search: the database looks for each patient and each agent separately. */
const SEARCHED_VALUES = 50

/** Records that one request compares with the search; the rest follows the next link. */
const COMPARED = 1000
const COMPARED_AT_ONCE = 100

/** Patients of the records that one request compares, counted for each value and constraint: a record may have any number. */
const COMPARED_PATIENTS = 20_000

/**
 * The database evaluates the clauses that it can. Each record is compared with the others as the AuditEvent it
 * becomes, by the same rules as any resource. A request does a bounded amount of work, however long the trail is
 * (AUDIT-16).
 */
export async function searchAudit<P extends AnyProblem>(
  store: Store,
  search: AuditSearch<P>,
): Promise<Resource | BadSearch | P> {
  const { params, lenient, work, fhirBaseUrl, compartment } = search
  const ids = await openEventIds(store)
  const place = readPosition(params, ids)
  if (place === 'unreadable') return failFor('audit-page-link-changed')
  const asked = params.filter(([name]) => name !== PAGE)
  const query = parseQuery(['AuditEvent'], asked, { baseUrl: fhirBaseUrl, lenient, work })
  if (isFailure(query)) return query
  const order = chooseOrder(query)
  if (order === undefined) return failFor('audit-sort-unsupported')
  if (query.includes.length > 0) return failFor('audit-include-unsupported')
  const clauses = query.types.flatMap(type => type.clauses)
  if (clauses.some(clause => clause.kind === 'chain' || clause.kind === 'has'))
    return failFor('audit-chain-unsupported')
  if (countValues(clauses) > SEARCHED_VALUES) return TOO_MANY_VALUES
  const address = `${fhirBaseUrl}/${compartment === undefined ? '' : `Patient/${compartment}/`}AuditEvent`
  const plan = { ...toDatabaseSearch(clauses, compartment, search.filter, ids), ids }
  if (query.shape.summary === 'count' || query.count === 0) {
    const total = await count(store, search, plan)
    return isFailure<number | undefined | P, P>(total) ? total : createCount(address, query, total)
  }
  const found = await collect(store, search, plan, { order, wanted: query.count, from: place })
  return isFailure<Collected | P, P>(found)
    ? found
    : createPage(address, query, found, place === undefined, ids)
}

interface SearchPlan extends DatabaseSearch {
  readonly ids: EventIds
}

/** Undefined if a bounded amount of work does not suffice. */
async function count<P extends AnyProblem>(
  store: Store,
  search: AuditSearch<P>,
  plan: SearchPlan,
): Promise<number | undefined | P> {
  if (plan.checksAccess && plan.rest.length === 0) return (await countRecords(store, plan.filter))?.records
  const found = await collect(store, search, plan, { order: 'newest', wanted: Infinity, from: undefined })
  if (isFailure<Collected | P, P>(found)) return found
  return found.next ? undefined : found.hits.length
}

interface Collected {
  readonly hits: readonly Resource[]
  readonly next: TrailPosition | undefined
}

interface Wanted {
  readonly order: 'newest' | 'oldest'
  readonly wanted: number
  readonly from: TrailPosition | undefined
}

async function collect<P extends AnyProblem>(
  store: Store,
  { filter, panelMembers, fhirBaseUrl }: AuditSearch<P>,
  { filter: recordFilter, rest, ids }: SearchPlan,
  { order, wanted, from }: Wanted,
): Promise<Collected | P> {
  const known = createPatientCache(filter, panelMembers)
  const hits: Resource[] = []
  const values = 1 + countValues(rest) + (filter === 'everything' ? 0 : filter.length)
  let patientsLeft = COMPARED_PATIENTS
  let after = from
  let last = from
  for (let compared = 0; compared < COMPARED; ) {
    const limit = Math.min(COMPARED_AT_ONCE, COMPARED - compared)
    const { records, next } = await findPage(store, { ...recordFilter, order, after, limit })
    const problem = await known.learn(records)
    if (problem) return problem
    for (const record of records) {
      if (patientsLeft < 0) return { hits, next: after }
      patientsLeft -= (1 + countPatients(record)) * values
      const resource = toAuditEvent(record, { fhirBaseUrl, ids })
      const matches =
        isShown(record, resource, filter, fhirBaseUrl, known) &&
        rest.every(clause => matchesClause(resource, clause, fhirBaseUrl) === true)
      if (matches && hits.length === wanted) return { hits, next: last }
      after = { at: record.at, id: record.id }
      if (!matches) continue
      hits.push(resource)
      // A link points to the last returned record, not to the last one read, which may concern any patient.
      last = after
    }
    if (next) return { hits, next }
    if (records.length < limit) return { hits, next: undefined }
    compared += limit
  }
  return { hits, next: after }
}

function createPage(
  address: string,
  query: Query,
  { hits, next }: Collected,
  isFirst: boolean,
  ids: EventIds,
): Resource {
  const total = isFirst && next === undefined ? { total: hits.length } : {}
  const links = [
    { relation: 'self', url: buildUrl(address, query.used) },
    ...(next
      ? [{ relation: 'next', url: buildUrl(address, [...query.used, [PAGE, ids.format(next)]]) }]
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
    ...(entry.length > 0 && { entry }),
  }
}

/** A Bundle without total if there are too many, and an OperationOutcome that says so. */
function createCount(address: string, query: Query, total: number | undefined): Resource {
  const entry = [{ resource: TOO_MANY, search: { mode: 'outcome' } }]
  return {
    resourceType: 'Bundle',
    type: 'searchset',
    ...(total === undefined ? { entry } : { total }),
    link: [{ relation: 'self', url: buildUrl(address, query.used) }],
  }
}

const TOO_MANY = {
  resourceType: 'OperationOutcome',
  issue: [
    {
      severity: 'warning',
      code: 'too-costly',
      details: {
        text: 'Cannot count: too many AuditEvents. Add a date, patient, agent or subtype to the search.',
      },
    },
  ],
} as const

const DATES: ReadonlySet<string> = new Set(['date', '_lastUpdated'])
function chooseOrder({ sort }: Query): 'newest' | 'oldest' | undefined {
  const [key, ...more] = sort
  if (!key) return 'newest'
  if (more.length > 0 || !DATES.has(key.parameter)) return undefined
  return key.descending ? 'newest' : 'oldest'
}

function readPosition(params: Params, ids: EventIds): TrailPosition | undefined | 'unreadable' {
  const [page, ...more] = params.filter(([name]) => name === PAGE)
  if (!page) return undefined
  return (more.length === 0 ? ids.parse(page[1]) : undefined) ?? 'unreadable'
}

function buildUrl(address: string, params: Params): string {
  const query = params.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
  return query.length === 0 ? address : `${address}?${query.join('&')}`
}

function countValues(clauses: readonly SearchClause[]): number {
  return clauses.reduce((sum, clause) => sum + ('values' in clause ? clause.values.length : 1), 0)
}

function countPatients(record: KeptRecord): number {
  return readFiledPatients(record).patients.length
}

const TOO_MANY_VALUES = failFor('audit-values-too-many', { most: SEARCHED_VALUES })

/**
 * Whether the caller may see an event. A caller limited to one patient or a panel sees no event about several patients:
 * it would reveal the others (AUDIT-5).
 */
export function isShown(
  record: KeptRecord,
  resource: Resource,
  filter: AccessFilter,
  fhirBaseUrl: string,
  membership: PanelMembership,
): boolean {
  if (filter === 'everything') return true
  return filter.some(limit => {
    const isNarrow = limit.patient !== undefined || limit.panel !== undefined
    if (isNarrow && record.patients !== null) return false
    if (limit.patient !== undefined && record.patient_id !== limit.patient) return false
    return satisfies(resource, [limit], fhirBaseUrl, membership)
  })
}

interface KnownPatients<P> extends PanelMembership {
  /** Undefined if every patient is known; otherwise the problem. */
  learn(records: readonly KeptRecord[]): Promise<P | undefined>
}

/** Looks up each patient once. */
export function createPatientCache<P extends AnyProblem>(
  filter: AccessFilter,
  panelMembers: FindPanelMembership<P>,
): KnownPatients<P> {
  const panels = filter === 'everything' ? [] : filter.flatMap(({ panel }) => panel ?? [])
  const asked = new Set<string>()
  const rosters: PanelMembership[] = []
  return {
    includes: (panel, patient) => rosters.some(it => it.includes(panel, patient)),
    async learn(records) {
      const unknown = new Set(
        records.flatMap(({ patients, patient_id: id }) =>
          patients === null && id !== null && !asked.has(id) ? [id] : [],
        ),
      )
      if (panels.length === 0 || unknown.size === 0) return undefined
      const membership = await panelMembers(panels, unknown)
      if (isFailure<PanelMembership | P, P>(membership)) return membership
      for (const id of unknown) asked.add(id)
      rosters.push(membership)
      return undefined
    },
  }
}
