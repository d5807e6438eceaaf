import {
  fail,
  findNamedBinaries,
  findOperation,
  formatExact,
  type HistoryQuery,
  isProblem,
  isRecord,
  limits,
} from '../../fhir/index.ts'
import type {
  BackendSession,
  FhirBackend,
  FhirRequest,
  FhirResponse,
  History,
  HistoryPage,
  Kind,
  Operation,
  SearchEntry,
} from '../../fhir-api/index.ts'
import { getPath } from '../../fhir-api/index.ts'
import { grantFingerprint } from '../../smart/index.ts'
import { commit } from './commit.ts'
import type { Call, Context } from './context.ts'
import { docref, documentOf } from './documents.ts'
import { EXCLUDED_TYPES } from './excluded-types.ts'
import { computeAllowance, onBehalfOf, withAllowance } from './http/allowance.ts'
import { buildHeaders, buildQuery } from './http/build-request.ts'
import type { UpstreamRequest } from './http/exchange.ts'
import { toFailure } from './http/failure.ts'
import { parseResource } from './http/parse-resource.ts'
import { passThrough } from './http/pass-through.ts'
import { passRequest } from './pass-request.ts'
import { passWrite } from './pass-write.ts'
import type { Problem } from './problem.ts'
import { readLast, readVersion } from './read-version.ts'
import { collectEntries, searchFor } from './search/collect.ts'
import { toEntry } from './search/entry.ts'
import type { PageCursor } from './search/fetch-page.ts'
import { fetchPage } from './search/fetch-page.ts'
import { findEverything } from './search/find-everything.ts'
import { scanVersions } from './search/find-history.ts'
import { findMatch } from './search/find-match.ts'
import { dropFormat, findPage } from './search/find-page.ts'
import { parseCursor } from './search/page-links.ts'
import { planSearch, withPageSize } from './search/plan.ts'

/** An operation that the site lets pass (`smart.fhir.upstream-operations`), for a caller who may see everything. */
function passOperation(context: Context, call: Call<Operation>): Promise<FhirResponse | Problem> {
  return passThrough(context, call, requestFor(context, call))
}

const TERMINOLOGY: ReadonlySet<string> = new Set(['CodeSystem', 'ConceptMap', 'Parameters', 'ValueSet'])

/** A terminology operation. Its response holds definitions and codes; one that holds anything else is not released. */
async function passTerminology(context: Context, call: Call<Operation>): Promise<FhirResponse | Problem> {
  const answer = await context.upstream.ask(requestFor(context, call))
  if (isProblem(answer)) return answer
  if (answer.status !== 200) return toFailure(answer, call.access)
  const resource = parseResource(answer)
  if (isProblem(resource)) return resource
  if (!holdsOnlyTerminology(resource))
    return fail({ problem: 'upstream-broken', why: 'its terminology service answered with other resources' })
  return { status: 200, headers: {}, body: answer.text }
}

function holdsOnlyTerminology(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(holdsOnlyTerminology)
  if (!isRecord(value)) return true
  const { resourceType } = value
  if (resourceType !== undefined && !TERMINOLOGY.has(String(resourceType))) return false
  return Object.values(value).every(holdsOnlyTerminology)
}

function requestFor(context: Context, call: Call<Operation>): UpstreamRequest {
  const { interaction, body, preferences } = call
  const query = buildQuery(
    interaction.params.filter(([name]) => name !== '_format' && name !== '_pretty'),
    context.addresses,
  )
  const path = getPath(interaction)
  return {
    method: interaction.posted ? 'POST' : 'GET',
    path: query === '' ? path : `${path}?${query}`,
    headers: {
      ...buildHeaders(call),
      ...(preferences.respondAsync && { prefer: 'respond-async' }),
      ...(body !== undefined && { 'content-type': 'application/fhir+json; charset=utf-8' }),
    },
    ...(body !== undefined && { body: context.addresses.inward(formatExact(body)) }),
  }
}

type OperationHandler = (context: Context, call: Call<Operation>) => Promise<FhirResponse | Problem>

/** The operations whose response is checked here, by name and level. */
const OPERATIONS: Readonly<Record<string, OperationHandler>> = {
  'DocumentReference/$docref': docref,
  'Patient/id/$summary': documentOf('Patient'),
  'Composition/id/$document': documentOf('Composition'),
}

/** Performs an operation that the upstream has and the API does not; undefined where it is not offered. */
function performOperation(
  context: Context,
  call: Call<Operation>,
): Promise<FhirResponse | Problem> | undefined {
  return findHandler(context, call)?.(context, call)
}

function findHandler(
  { operations }: Context,
  { interaction }: Call<Operation>,
): OperationHandler | undefined {
  const { name, type, id } = interaction
  const level = id === undefined ? '' : '/id'
  const own = OPERATIONS[`${type}${level}/${name}`] ?? (type && OPERATIONS[`type${level}/${name}`])
  if (own) return own
  const kind = findOperation(operations, interaction)?.needs.kind
  if (kind === 'whole-type') return passTerminology
  return kind === 'all-data' ? passOperation : undefined
}

// They send few requests to the upstream, and come by the thousand.
const READS: ReadonlySet<Kind> = new Set(['read', 'vread'])

/** Another FHIR server as a backend of the FHIR API. The number of requests to it is limited for each session. */
export function createBackend(context: Context): FhirBackend {
  return {
    forRequest(request) {
      const caller = { holder: grantFingerprint(request.authenticated.grant), connection: request.connection }
      const upstream = READS.has(request.interaction.kind)
        ? onBehalfOf(context.upstream, caller)
        : withAllowance(context.upstream, computeAllowance(request.body), caller)
      return createSession({ ...context, upstream }, request)
    },
    async capabilities() {
      const statement = await context.capabilities()
      return isProblem(statement) ? statement : JSON.stringify(statement)
    },
    pages: context.pages,
    accessCache: context.accessCache,
    excludedTypes: EXCLUDED_TYPES,
  }
}

function createSession(context: Context, request: FhirRequest): BackendSession {
  return {
    read: (type, id, version) => readVersion(context, request, type, id, version),
    readLast: (type, id) => readLast(context, request, type, id),
    findDocuments: binaryId => findDocuments(context, request, binaryId),
    findMatch: (it, type, params) => findMatch(context, it, type, params),
    commit: (writes, options) => commit(context, request, writes, options),
    mayChange: operation =>
      operation.posted === true && findOperation(context.operations, operation)?.needs.kind === 'all-data',
    toPublic: content => JSON.parse(context.addresses.outward(JSON.stringify(content))),
    panelMembers: (panels, patients) => context.findMembers(context, request, panels, patients),
    passThrough: (it, cursor) => passRequest(context, it, cursor) ?? passWrite(context, it),
    search: (it, cursor) => findPage(context, it, parseCursor(cursor)),
    collect: (it, limit) => collectEntries(context, it, limit),
    history: (it, query, cursor) => findHistory(context, it, query, parseCursor(cursor)),
    everything: (it, of, cursor) => findEverything(context, it, of, parseCursor(cursor)),
    operation: it => performOperation(context, it),
  }
}

/** DocumentReferences within the grant that name a Binary. */
async function findDocuments(context: Context, call: Call, id: string): Promise<readonly SearchEntry[]> {
  const search = searchFor(call, 'DocumentReference', [
    ['location', `Binary/${id},${context.baseUrl}/Binary/${id}`],
    ['_count', String(limits.DOCUMENTS_OF_BINARY)],
  ])
  const plan = await planSearch(context, search)
  if (isProblem(plan) || !plan.request) return []
  const page = await fetchPage(context, search, plan.request, plan.check)
  if (isProblem(page)) return []
  return page.matches
    .filter(it => findNamedBinaries(it.resource, context.baseUrl).has(id))
    .slice(0, limits.DOCUMENTS_OF_BINARY)
    .map(toEntry)
}

/** A page of a history whose response has to be inspected. */
async function findHistory(
  context: Context,
  call: Call<History>,
  query: HistoryQuery,
  from: PageCursor | undefined,
): Promise<HistoryPage | Problem> {
  const { interaction } = call
  const isOfOne = interaction.kind === 'history-instance'
  const page = await scanVersions(context, call, isOfOne ? 'r' : 's', {
    first: `${getPath(interaction)}?${buildQuery(dropFormat(withPageSize(query)), context.addresses)}`,
    ...{ count: query.count, from },
    ...(isOfOne && { of: { type: interaction.type, id: interaction.id } }),
  })
  if (page === 'nothing') return { versions: [], total: 0, cursors: new Map(), isNothing: true }
  if (isProblem(page)) return page
  const { items: versions, links: cursors, isWhole } = page
  return { versions, total: isWhole ? versions.length : undefined, cursors, isNothing: false }
}
