import { hash } from 'node:crypto'
import { isFailure } from '../../../core/index.ts'
import {
  type DateRange,
  isInCareRange,
  isInCompartment,
  type Params,
  parseHistory,
  type Resource,
  readCareRange,
  resourceTypes,
  type Shape,
} from '../../../fhir/index.ts'
import {
  type EverythingTarget,
  type Failure,
  type FhirRequest,
  getPath,
  listReferences,
  type Operation,
  type SearchPage,
} from '../../../fhir-api/index.ts'
import { hasCompartment } from '../../../smart/index.ts'
import { chunk, IDS_AT_ONCE } from '../chunk.ts'
import type { GatewayContext } from '../context.ts'
import { buildQuery } from '../http/build-request.ts'
import { failTooCostly } from '../http/response.ts'
import { buildPage, buildSearch, type UpstreamSearch } from '../http/upstream-search.ts'
import { INCLUDES_REMEMBERED, UPSTREAM_PAGES } from '../limits.ts'
import type { CheckedResource, PageCursor, UpstreamPage } from '../paging.ts'
import { EXCLUDED_TYPES, hasAccess } from '../read/access.ts'
import { fetchPage, PAGE_SIZE, type PageCheck, visitPages } from './check-page.ts'
import { gather, type UpstreamItems } from './gather.ts'
import { isUnlimited } from './membership-params.ts'
import { setPageSize } from './plan.ts'

/** The least page of a whole record. Resources that are left out, such as AuditEvents, must not use up the pages of one request. */
const MIN_PAGE_OF_WHOLE = 20

/** `$everything` as the upstream returns it, as far as the caller may search or read it. */
export async function findEverything(
  context: GatewayContext,
  request: FhirRequest<Operation>,
  of: EverythingTarget,
  cursor: PageCursor | undefined,
): Promise<SearchPage | Failure> {
  const wanted = planEverything(request, of)
  const patient = of.type === 'Patient' ? of.id : undefined
  return isFailure(wanted) ? wanted : fetchRecord(context, request, cursor, { ...wanted, patient })
}

/** The parameters for the upstream, and the filter of its response. */
export interface RecordRequest {
  /** The page size. */
  readonly count: number
  readonly sent: Params
  /** The range of the care dates. Some upstreams ignore `start` and `end`. */
  readonly care?: DateRange | undefined
  /** The types that the caller names. Some upstreams ignore `_type`. */
  readonly types?: ReadonlySet<string> | undefined
  /** The patient whose compartment the matches are; other resources are included. Some upstreams call all of them matches. */
  readonly patient?: string | undefined
}

/** A page of the resources that the upstream returns for an operation, each checked by its content. */
export async function fetchRecord(
  context: GatewayContext,
  request: FhirRequest<Operation>,
  cursor: PageCursor | undefined,
  record: RecordRequest,
): Promise<SearchPage | Failure> {
  const path = getPath(request.interaction)
  const first = `${path}?${buildQuery(record.sent, context.urls)}`
  const includes = trackIncludes(cursor?.shown ?? [])
  const fetch = (from: PageCursor) => fetchItems(context, request, buildPage(request, first), from, record)
  const getSize = ({ checked }: Item) => checked.text.length
  const page = await gather(cursor, record.count, [fetch], { shown: includes, getSize })
  if (isFailure(page)) return page
  const { items, extent } = page
  if (extent === 'endless') return failTooCostly(UPSTREAM_PAGES * PAGE_SIZE)
  const pick = (mode: Item['mode']) => items.filter(it => it.mode === mode).map(it => it.checked)
  const matches = pick('match')
  return {
    matches,
    includes: pick('include'),
    used: request.interaction.params,
    shape: WHOLE,
    total: extent === 'whole' ? matches.length : undefined,
    ...(extent === 'cut' && { lacks: 'matches' }),
    cursors: new Map([...page.links].map(([to, it]) => [to, { ...it, shown: includes.keys() }])),
  }
}

const WHOLE: Shape = { summary: 'false', elements: [] }

/** The caller may read or search the resource, whatever its search mode is. */
export const VISIBLE: PageCheck = {
  isMatch: (it, check) => check.allows('s', it) || check.allows('r', it),
  isInclude: (it, check) => check.allows('r', it),
  includes: (_matches, candidates) => candidates,
}

/** The entries of a page of the upstream that the caller may see. */
async function fetchItems(
  context: GatewayContext,
  request: FhirRequest<Operation>,
  first: UpstreamSearch,
  from: PageCursor,
  record: RecordRequest,
): Promise<UpstreamItems<Item> | Failure> {
  const page = await fetchPage(context, request, first, VISIBLE, from)
  if (isFailure(page)) return page
  const isOutside = createOutsideTest(context, record)
  const all = listItems(page, isOutside)
  const items = seesRecord(request) ? all : await replaceShared(context, request, all, isOutside)
  if (isFailure(items)) return items
  const { continuation, isShortened } = page
  return { items: selectWanted(context, record, items), continuation, isShortened }
}

/**
 * The entries for a caller who may see only a part of the record. The upstream also returns resources to which only hidden ones
 * refer, and which would reveal them: a Medication, for example, shows that there is a MedicationRequest. Therefore resources
 * that belong to no patient are fetched by the references in the visible ones.
 */
async function replaceShared(
  context: GatewayContext,
  request: FhirRequest,
  items: readonly Item[],
  isOutside: (checked: CheckedResource) => boolean,
): Promise<readonly Item[] | Failure> {
  const ofPatients = items.filter(({ checked }) => hasCompartment(checked.type))
  const named = new Set(
    ofPatients
      .filter(({ checked }) => !isOutside(checked))
      .flatMap(({ checked }) => listReferences(checked.resource, context.baseUrl)),
  )
  const shared = await fetchShared(context, request, named)
  if (isFailure(shared)) return shared
  const isShown = ({ checked }: Item) => !isOutside(checked) || named.has(`${checked.type}/${checked.id}`)
  return [...ofPatients.filter(isShown), ...shared.map(it => toItem('include', it))]
}

/** Fetches those of the resources (`Type/id`) that belong to no patient and that the caller may see. */
async function fetchShared(
  context: GatewayContext,
  request: FhirRequest,
  references: ReadonlySet<string>,
): Promise<readonly CheckedResource[] | Failure> {
  const found: CheckedResource[] = []
  const ids = Map.groupBy(
    [...references].map(reference => reference.split('/')),
    ([type = '']) => type,
  )
  for (const [type, named] of ids) {
    if (hasCompartment(type) || !hasAccess(request.access, type, 'r')) continue
    for (const few of chunk(named, IDS_AT_ONCE)) {
      const wanted = few.map(([, id = '']) => id)
      const params = [
        ['_id', wanted.join(',')],
        ['_count', String(wanted.length)],
      ] as const
      const outgoing = buildSearch(request, `/${type}`, params, false, context.urls)
      const matchesQuery = ({ id = '' }: Resource) => wanted.includes(id)
      const check = { ...VISIBLE, matchesQuery }
      const visited = await visitPages(context, request, outgoing, check, Number.POSITIVE_INFINITY, page => {
        found.push(...page.matches)
      })
      if (isFailure(visited)) return visited
    }
  }
  return found
}

/** Whether a resource is outside the record of the patient, if it is about one. */
function createOutsideTest({ baseUrl }: GatewayContext, { patient }: RecordRequest) {
  return ({ resource }: CheckedResource) =>
    patient !== undefined && !isInCompartment(resource, patient, baseUrl)
}

function listItems(
  { matches, includes }: UpstreamPage,
  isOutside: (checked: CheckedResource) => boolean,
): readonly Item[] {
  return [
    ...matches.map(it => toItem(isOutside(it) ? 'include' : 'match', it)),
    ...includes.map(it => toItem('include', it)),
  ]
}

function toItem(mode: Item['mode'], checked: CheckedResource): Item {
  return { mode, checked }
}

function selectWanted(
  { baseUrl }: GatewayContext,
  { care, types }: RecordRequest,
  items: readonly Item[],
): readonly Item[] {
  return items.filter(
    ({ checked: { resource, type } }) =>
      (!care || isInCareRange(resource, care, baseUrl)) && (!types || types.has(type)),
  )
}

/** Upstreams may repeat included resources on every page: each is shown once, as far as a link can record them. */
function trackIncludes(before: readonly string[]) {
  const keys = new Set(before)
  const toKey = ({ checked: { resource } }: Item) =>
    hash('sha256', `${resource.resourceType}/${resource.id}`, 'base64url').slice(0, 10)
  const isInclude = ({ mode }: Item) => mode === 'include'
  return {
    has: (item: Item) => isInclude(item) && keys.has(toKey(item)),
    add(item: Item) {
      if (isInclude(item) && keys.size < INCLUDES_REMEMBERED) keys.add(toKey(item))
    },
    keys: () => [...keys],
  }
}

interface Item {
  readonly mode: 'match' | 'include'
  readonly checked: CheckedResource
}

/** The types of a patient's record. */
const RECORD_TYPES = resourceTypes.filter(type => hasCompartment(type) && !EXCLUDED_TYPES.has(type))

/** Whether the caller may see all of the record that the operation is about, so that few resources are left out. */
function seesRecord({ access, interaction: { type = '', id } }: FhirRequest<Operation>): boolean {
  const filter = access.filterFor(type, 'r')
  const patients =
    type === 'Patient' ? [id] : filter === 'everything' ? [undefined] : filter.map(it => it.patient)
  return RECORD_TYPES.every(it => patients.every(patient => isUnlimited(access.filterFor(it, 's'), patient)))
}

function planEverything(
  request: FhirRequest<Operation>,
  { types: named }: EverythingTarget,
): RecordRequest | Failure {
  const {
    access,
    interaction: { params },
  } = request
  const care = readCareRange(params)
  if (isFailure(care)) return care
  const paged = parseHistory(
    params.filter(([name]) => name === '_since' || name === '_count'),
    false,
  )
  if (isFailure(paged)) return paged
  const { count } = paged
  const isWhole = named.length === 0 && !care && seesRecord(request)
  const range = params.filter(([name]) => name === 'start' || name === 'end')
  const sent = [...range, ...setPageSize(paged, isWhole ? MIN_PAGE_OF_WHOLE : PAGE_SIZE)]
  const isVisible = (type: string) => hasAccess(access, type, 's') || hasAccess(access, type, 'r')
  // HAPI takes several times as long with a list of all types. Every entry is checked in any case.
  if (named.length === 0 && RECORD_TYPES.every(isVisible)) return { count, sent, care }
  const types = (named.length > 0 ? named : resourceTypes).filter(isVisible)
  const wanted = named.length > 0 ? new Set(named) : undefined
  // With `_type`, HAPI follows the references of resources of these types only.
  const isSent = types.every(hasCompartment)
  return { count, sent: isSent ? [...sent, ['_type', types.join(',')]] : sent, care, types: wanted }
}
