import { randomUUID } from 'node:crypto'
import { isRecord } from '../../../../core/index.ts'
import {
  findSearchParameter,
  formatExact,
  indexParameter,
  isResource,
  parseExact,
  toPlain,
} from '../../../../fhir/index.ts'
import {
  type Behaviour,
  findType,
  type HapiRequest,
  type HapiResponse,
  isSearch,
  type Next,
  parseBody,
  refuse,
  respond,
  type StoredServer,
} from './behaviour.ts'
import { findVersion } from './write-behaviours.ts'

const REUSE_MS = 60_000

interface FoundEntry {
  readonly resource?: { readonly resourceType: string; readonly id: string }
  readonly search?: { readonly mode: string }
}

function entriesOf(bundle: Readonly<Record<string, unknown>>): readonly FoundEntry[] {
  return Array.isArray(bundle.entry) ? bundle.entry : []
}

/**
 * Searches are answered from results up to 60 s old, unless the request says `no-cache` or `no-store`; only the latter is not stored. A match is shown in
 * its present version, even if it no longer matches. An absolute reference has the cache entry of the relative one.
 */
export const staleSearches: Behaviour = stored => {
  const found = new Map<string, { readonly at: number; readonly bundle: Readonly<Record<string, unknown>> }>()
  return async (request, next) => {
    if (!isSearch(request) || hasOffset(request)) return next(request)
    const key = toKey(request)
    const earlier = found.get(key)
    const cacheControl = request.headers['cache-control'] ?? ''
    const isFresh = /no-(?:cache|store)/.test(cacheControl)
    if (!isFresh && earlier && stored.clock() - earlier.at < REUSE_MS)
      return respond(200, await showPresent(stored, earlier.bundle))
    const response = await next(request)
    if (response.status === 200 && !cacheControl.includes('no-store'))
      found.set(key, { at: stored.clock(), bundle: parseBody(response.body) })
    return response
  }
}

const USUAL_COUNT = 20

/**
 * A search with `no-store` has one page, of up to `max-results` rows of the database or 100: the others are left out, included
 * ones too, without a link, and the total is that of the page. A resource has a row for each value that it is sorted by or
 * found by.
 */
export const unstoredHasOnePage: Behaviour = () => async (request, next) => {
  const directives = request.headers['cache-control'] ?? ''
  if (!isSearch(request) || !directives.includes('no-store')) return next(request)
  const most = Number(/max-results=(\d+)/.exec(directives)?.[1] ?? 100)
  if (most > 1000) return refuse(400, '1165', 'max-results value must not exceed 1000')
  const response = await next(request)
  const bundle = parseExact(response.body)
  if (!isRecord(bundle) || !Array.isArray(bundle.entry)) return response
  const count = Math.min(Number(findParam(request, '_count') ?? USUAL_COUNT), most)
  let rows = 0
  const entry = bundle.entry.filter(it => {
    const isShown = rows < count
    rows += countRows(request, toPlain(it.resource))
    return isShown
  })
  const total = entry.length
  const link = Array.isArray(bundle.link) ? bundle.link.filter(({ relation }) => relation === 'self') : []
  return { ...response, body: formatExact({ ...bundle, total, link, entry }) }
}

/** The rows of a resource: one for each combination of its values of the parameters that the search names. */
function countRows({ params }: HapiRequest, resource: unknown): number {
  if (!isResource(resource)) return 1
  const named = params.flatMap(([name, value]) =>
    name === '_sort' ? value.split(',').map(key => key.replace('-', '')) : [name.split(':')[0] ?? ''],
  )
  return named
    .flatMap(name => findSearchParameter(resource.resourceType, name) ?? [])
    .map(parameter => indexParameter(resource, parameter, 'http://rows.test').length)
    .reduce((rows, values) => rows * Math.max(values, 1), 1)
}

/**
 * A search with `_offset` is neither stored nor answered from earlier results, and links to the next page by its offset. The
 * first page has a total only if it is the last.
 */
export const pagesByOffset: Behaviour = stored => async (request, next) => {
  const offset = Number(findParam(request, '_offset') ?? Number.NaN)
  if (!isSearch(request) || Number.isNaN(offset)) return next(request)
  const count = Number(findParam(request, '_count') ?? USUAL_COUNT)
  const params = request.params.filter(([name]) => name !== '_offset' && name !== '_count')
  const includes = params.filter(([name]) => /^_(?:rev)?include(?::|$)/.test(name))
  const own = params.filter(it => !includes.includes(it))
  const isCount = count === 0 || findParam(request, '_summary') === 'count'
  const response = await next({ ...request, params: [...own, ['_count', isCount ? '0' : '1000']] })
  const whole = response.status === 200 ? parseExact(response.body) : undefined
  if (!isRecord(whole) || isCount) return response
  const matches = await readFurther(stored, whole)
  const end = offset + count
  const following = new URLSearchParams(
    [...params, ['_count', String(count)], ['_offset', String(end)]].map(it => [...it]),
  )
  const url = `${stored.baseUrl}/${request.path.replace('/_search', '')}?${following}`
  const link = matches.length > end ? [{ relation: 'next', url }] : []
  const { total: _, entry: __, ...rest } = whole
  const shown = matches.slice(offset, end)
  const entry = [...shown, ...(await findIncluded(shown))]
  const isCounted = link.length === 0 || findParam(request, '_total') === 'accurate'
  const bundle = {
    ...rest,
    ...(isCounted && { total: matches.length }),
    link,
    ...(entry.length > 0 && { entry }),
  }
  return { ...response, body: formatExact(bundle) }

  /** What the matches of the page include. */
  async function findIncluded(shown: readonly FoundEntry[]): Promise<readonly FoundEntry[]> {
    if (includes.length === 0 || shown.length === 0) return []
    const ids = shown.flatMap(it => it.resource?.id ?? []).join()
    const page = await next({ ...request, params: [...includes, ['_id', ids], ['_count', '1000']] })
    const included = parseExact(page.body)
    return isRecord(included) ? entriesOf(included).filter(({ search }) => search?.mode === 'include') : []
  }
}

/** The entries of a page of the embedded server and of all further pages. */
async function readFurther(
  stored: StoredServer,
  first: Readonly<Record<string, unknown>>,
): Promise<readonly FoundEntry[]> {
  const entries = [...entriesOf(first)]
  for (let page = first; ; ) {
    const links = Array.isArray(page.link) ? page.link : []
    const next = links.find(({ relation }) => relation === 'next')?.url
    if (next === undefined) return entries
    const { pathname, searchParams } = new URL(next)
    const path = pathname.slice(new URL(stored.baseUrl).pathname.length + 1)
    const read = parseExact((await stored.get(path, [...searchParams])).body)
    if (!isRecord(read)) return entries
    page = read
    entries.push(...entriesOf(page))
  }
}

/** The server has pages of up to seven resources, whatever is requested. */
export const smallPages: Behaviour = () => (request, next) => {
  const count = findParam(request, '_count') ?? String(USUAL_COUNT)
  if (!isSearch(request) || Number(count) <= SMALL_PAGE) return next(request)
  return next({ ...request, params: [...dropCount(request), ['_count', String(SMALL_PAGE)]] })
}

const SMALL_PAGE = 7

/** The server ends a page that would have more than a number of bytes. */
export const pagesByBytes: Behaviour = () => async (request, next) => {
  let count = Number(findParam(request, '_count') ?? USUAL_COUNT)
  for (;;) {
    const sized = isSearch(request)
      ? [...dropCount(request), ['_count', String(count)] as const]
      : request.params
    const response = await next({ ...request, params: sized })
    if (!isSearch(request) || count <= 1 || response.body.length <= PAGE_BYTES) return response
    count = Math.ceil(count / 2)
  }
}

const PAGE_BYTES = 3_000

/** The server ends a search early, and says so by its total alone. */
export const endsInSilence: Behaviour = () => (request, next) =>
  endEarly(request, next, bundle => ({ total: entriesOf(bundle).length }))

/** The server ends a search early, and says so in an OperationOutcome. */
export const endsInTime: Behaviour = () => (request, next) =>
  endEarly(request, next, () => ({}), [
    {
      resource: {
        resourceType: 'OperationOutcome',
        issue: [{ severity: 'warning', code: 'timeout', diagnostics: 'The search was ended' }],
      },
      search: { mode: 'outcome' },
    },
  ])

const SHOWN_EARLY = 3

async function endEarly(
  request: HapiRequest,
  next: Next,
  change: (bundle: Readonly<Record<string, unknown>>) => object,
  added: readonly object[] = [],
): Promise<HapiResponse> {
  if (!isSearch(request)) return next(request)
  const response = await next({ ...request, params: [...dropCount(request), ['_count', '1000']] })
  const bundle = response.status === 200 ? parseBody(response.body) : {}
  const entries = entriesOf(bundle)
  if (entries.length <= SHOWN_EARLY) return response
  const { total: _, ...rest } = bundle
  const entry = [...entries.slice(0, SHOWN_EARLY), ...added]
  return { ...response, body: JSON.stringify({ ...rest, ...change(bundle), link: [], entry }) }
}

function dropCount({ params }: HapiRequest): HapiRequest['params'] {
  return params.filter(([name]) => name !== '_count')
}

function hasOffset(request: HapiRequest): boolean {
  return findParam(request, '_offset') !== undefined
}

function findParam({ params }: HapiRequest, wanted: string): string | undefined {
  return params.find(([name]) => name === wanted)?.[1]
}

function toKey({ path, params }: HapiRequest): string {
  const relative = params.map(([name, value]) => [
    name,
    value.replace(/https?:[^,|]*\/([A-Z]\w+\/[\w.-]+)/g, '$1'),
  ])
  return `${path.replace('/_search', '')}?${relative
    .map(it => it.join('='))
    .toSorted()
    .join('&')}`
}

async function showPresent(stored: StoredServer, bundle: Readonly<Record<string, unknown>>): Promise<object> {
  const entry: FoundEntry[] = []
  for (const it of entriesOf(bundle)) {
    const present = it.resource && (await stored.get(`${it.resource.resourceType}/${it.resource.id}`))
    if (present?.status === 200) entry.push({ ...it, resource: JSON.parse(present.body) })
  }
  return { ...bundle, ...(bundle.entry !== undefined && { entry }) }
}

/** A reference with the server's own URL is not local: it finds nothing. */
export const ownUrlFindsNothing: Behaviour =
  ({ baseUrl }) =>
  async (request, next) => {
    if (!isSearch(request)) return next(request)
    const params = request.params.map(([name, value]) =>
      findSearchParameter(findType(request), name.split(':')[0] ?? '')?.type === 'reference'
        ? ([name, value.replaceAll(`${baseUrl}/`, 'http://not-local.test/fhir/')] as const)
        : ([name, value] as const),
    )
    return next({ ...request, params })
  }

/** There are no compartment searches. */
export const noCompartments: Behaviour = () => async (request, next) =>
  request.method === 'GET' && /^Patient\/[^/$]+\/(?:[A-Z]\w+|\*)$/.test(request.path)
    ? refuse(400, '0302', 'Unknown resource or operation in the compartment')
    : next(request)

const LOWER = /^(?:ge|gt|sa)/
const IS_DATE = /^(?:[a-z]{2})?\d{4}(?:-\d\d){0,2}(?:T.*)?$/

/** `ge` and `le` leave a named year or month out; several lower bounds, lists and `ap` are 400. */
export const dateQuirks: Behaviour = () => async (request, next) => {
  if (!isSearch(request)) return next(request)
  const dates = request.params.filter(
    ([name, value]) => isDateParameter(name) && IS_DATE.test(value.split(',')[0] ?? ''),
  )
  if (dates.some(([, value]) => value.startsWith('ap'))) return refuse(400, '1921', 'Unsupported prefix ap')
  if (dates.some(([, value]) => value.includes(',')))
    return refuse(400, '1922', 'Lists of dates are not supported')
  const lower = dates.filter(([, value]) => LOWER.test(value)).map(([name]) => name)
  if (new Set(lower).size < lower.length) return refuse(400, '1923', 'Can not have multiple lower bounds')
  return next({ ...request, params: request.params.map(leaveOutPeriod) })
}

function isDateParameter(name: string): boolean {
  return /(?:date|period|onset|_lastUpdated)/.test(name) && !name.includes(':')
}

function leaveOutPeriod([name, value]: readonly [string, string]): readonly [string, string] {
  if (!isDateParameter(name) || !/^[gl]e\d{4}(?:-\d\d)?$/.test(value)) return [name, value]
  return [name, value.replace(/^ge/, 'sa').replace(/^le/, 'eb')]
}

/** `sa` and `eb` are 400, a plain number has no implicit precision, and `||unit` matches the code alone, not the display unit. */
export const quantityQuirks: Behaviour = () => async (request, next) => {
  const isQuantity = (name: string) => /quantity|probability/.test(name) && !name.includes(':')
  const values = request.params.filter(([name]) => isQuantity(name))
  if (!isSearch(request) || values.length === 0) return next(request)
  if (values.some(([, value]) => /^(?:sa|eb)/.test(value))) return refuse(400, '1934', 'Unsupported prefix')
  const params = request.params.flatMap(([name, value]) => {
    const coded = isQuantity(name) ? value.replace('||', '|http://unitsofmeasure.org|') : value
    return isQuantity(name) && /^[\d.]+(?:\||$)/.test(value)
      ? ([
          [name, `ge${coded}`],
          [name, `le${coded}`],
        ] as const)
      : [[name, coded] as const]
  })
  return next({ ...request, params })
}

/** A search without a type is 400. */
export const noSearchOfAllTypes: Behaviour = () => async (request, next) =>
  request.method === 'GET' && request.path === ''
    ? refuse(400, '0287', 'This is the base URL of FHIR server. Unable to handle this request')
    : next(request)

/** A read with `_summary=text` is answered with HTML. */
export const textSummaryIsHtml: Behaviour = () => async (request, next) => {
  const isText = request.params.some(([name, value]) => name === '_summary' && value === 'text')
  const isRead = request.method === 'GET' && /^\w+\/[\w.-]+$/.test(request.path)
  return isText && isRead
    ? { status: 200, headers: { 'content-type': 'text/html;charset=UTF-8' }, body: '' }
    : next(request)
}

/** `_elements` leaves out mandatory elements that it does not name. */
export const elementsDropMandatory: Behaviour = () => async (request, next) => {
  const response = await next(request)
  const named = request.params.find(([name]) => name === '_elements')?.[1].split(',')
  if (!named || response.status !== 200) return response
  const keys = new Set(['resourceType', 'id', 'meta', ...named])
  const cutResource = (resource: object) =>
    Object.fromEntries(Object.entries(resource).filter(([key]) => keys.has(key)))
  const body = parseExact(response.body)
  if (!isRecord(body)) return response
  const shown = Array.isArray(body.entry)
    ? { ...body, entry: body.entry.map(it => ({ ...it, resource: cutResource(it.resource) })) }
    : cutResource(body)
  return { ...response, body: formatExact(shown) }
}

/** `$everything` calls all resources matches, also those outside the compartment. */
export const everythingMatches: Behaviour = () => async (request, next) => {
  const response = await next(request)
  return request.path.endsWith('$everything')
    ? { ...response, body: response.body.replaceAll('"mode":"include"', '"mode":"match"') }
    : response
}

const MOST_REVINCLUDES = 1000

/** `_revinclude` stops at 1,000 resources. */
export const fewRevincludes: Behaviour = () => async (request, next) => {
  const response = await next(request)
  if (!request.params.some(([name]) => name.startsWith('_revinclude'))) return response
  const bundle = parseBody(response.body)
  const isIncluded = ({ search }: FoundEntry) => search?.mode === 'include'
  const included = entriesOf(bundle).filter(isIncluded)
  if (included.length <= MOST_REVINCLUDES) return response
  const kept = new Set(included.slice(0, MOST_REVINCLUDES))
  const entry = entriesOf(bundle).filter(it => !isIncluded(it) || kept.has(it))
  return { ...response, body: JSON.stringify({ ...bundle, entry }) }
}

/** Unknown parameters, `:identifier`, `_text` and `_content` are 400; `_id:not` finds nothing if no such id exists. */
export const parametersRefused: Behaviour = stored => async (request, next) => {
  if (!isSearch(request)) return next(request)
  const names = request.params.map(([name]) => name)
  if (names.some(it => it.endsWith(':identifier')))
    return refuse(400, '2498', 'Unsupported modifier: identifier')
  if (names.some(it => it === '_text' || it === '_content'))
    return refuse(400, '1192', 'Fulltext search is not enabled')
  const excluded = request.params.find(([name]) => name === '_id:not')?.[1].split(',') ?? []
  const type = findType(request)
  const isAbsent = async (id: string) => (await stored.get(`${type}/${id}`)).status !== 200
  const areAbsent = await Promise.all(excluded.map(isAbsent))
  const findsNothing = excluded.length > 0 && !areAbsent.includes(false)
  const params = findsNothing ? [...request.params, ['_id', 'none'] as const] : request.params
  const response = await next({
    ...request,
    params,
    headers: { ...request.headers, prefer: 'handling=strict' },
  })
  return response.status === 400 ? refuse(400, '0524', 'Unknown search parameter') : response
}

/**
 * Pages are below the base without a type. The first page of a search that finds some resources by two of their values, or
 * sorts them by two, has neither `next` nor a total, unless the total is requested.
 */
export const pagesWithoutType: Behaviour = stored => {
  const pages = new Map<string, string>()
  return async (request, next) => {
    const page = pages.get(request.params.find(([name]) => name === '_getpages')?.[1] ?? '')
    if (page !== undefined) return withPages(await next(toRequest(page, request)), false, describe(request))
    if (request.path === '' && request.params.some(([name]) => name === '_getpages'))
      return refuse(410, '0417', 'Search ID does not exist and may have expired')
    const response = await next(request)
    if (hasOffset(request) || (!isSearch(request) && !request.path.endsWith('_history'))) return response
    return withPages(response, mayFindTwice(request))
  }

  function withPages(response: HapiResponse, isEndHidden = false, self?: string): HapiResponse {
    const bundle = response.status === 200 ? parseBody(response.body) : {}
    if (!Array.isArray(bundle.link)) return response
    const hasNext = bundle.link.some(({ relation }: { relation: string }) => relation === 'next')
    const link = bundle.link.flatMap(({ relation, url }: { relation: string; url: string }) => {
      if (relation === 'self') return [{ relation, url: self ?? url }]
      if (relation !== 'next') return [{ relation, url }]
      return isEndHidden ? [] : [{ relation, url: toPage(url) }]
    })
    const body = response.body.replace(JSON.stringify(bundle.link), JSON.stringify(link))
    return { ...response, body: isEndHidden && hasNext ? body.replace(/"total":\d+,/, '') : body }
  }

  function describe({ path, params }: HapiRequest): string {
    return `${stored.baseUrl}${path}?${new URLSearchParams(params.map(it => [...it]))}`
  }

  function toPage(url: string): string {
    const id = randomUUID()
    pages.set(id, url)
    return `${stored.baseUrl}?_getpages=${id}&_getpagesoffset=1&_bundletype=searchset`
  }

  function toRequest(url: string, { headers }: HapiRequest): HapiRequest {
    const { pathname, searchParams } = new URL(url)
    const path = pathname.slice(new URL(stored.baseUrl).pathname.length + 1)
    return { method: 'GET', path, params: [...searchParams], headers, body: '' }
  }
}

/** Resources with equal sort keys have a different order in every search. */
export const unstableOrder: Behaviour = () => {
  let searches = 0
  return (request, next) => {
    const last = ['_id', '-_id', '-_lastUpdated'][searches++ % 3]
    const params = request.params.map(([name, value]) =>
      name === '_sort' && !/(?:^|,)-?_id$/.test(value)
        ? ([name, `${value},${last}`] as const)
        : ([name, value] as const),
    )
    return next({ ...request, params })
  }
}

function mayFindTwice({ params }: HapiRequest): boolean {
  const isCounted = params.some(([name, value]) => name === '_total' && value === 'accurate')
  return !isCounted && params.some(([name]) => name === '_sort' || name.endsWith(':contains'))
}

/** A SearchParameter takes effect for all callers: the resources stored before are not found by it. */
export const searchParametersTakeEffect: Behaviour = () => {
  const redefined = new Set<string>()
  return async (request, next) => {
    const response = await next(request)
    const { code, base } = findType(request) === 'SearchParameter' ? parseBody(request.body) : {}
    if (response.status < 300 && ['POST', 'PUT'].includes(request.method) && Array.isArray(base))
      for (const type of base) redefined.add(`${type}?${code}`)
    const isRedefined = request.params.some(([name]) => redefined.has(`${findType(request)}?${name}`))
    return isSearch(request) && isRedefined ? respond(200, { ...EMPTY }) : response
  }
}

const EMPTY = { resourceType: 'Bundle', type: 'searchset', total: 0 }

/** A deleted resource is 410 with the version of the deletion. */
export const deletionHasLocation: Behaviour = stored => async (request, next) => {
  const response = await next(request)
  if (response.status !== 410 || !/^\w+\/[\w.-]+$/.test(request.path)) return response
  const location = `${stored.baseUrl}/${request.path}/_history/${await findVersion(stored, request.path)}`
  return { ...response, headers: { ...response.headers, location } }
}

/** The number of versions is kept for 60 s after it was asked for, also with `no-cache`. With `_since` they are not counted. */
export const staleVersionCount: Behaviour = stored => {
  const counts = new Map<string, { readonly at: number; readonly total: number }>()
  return async (request, next) => {
    const response = await next(request)
    if (!request.path.endsWith('_history') || response.status !== 200) return response
    if (request.params.some(([name]) => name === '_since'))
      return { ...response, body: response.body.replace(/"total":\d+,?/, '') }
    const bundle = parseBody(response.body)
    const kept = counts.get(request.path)
    const isKept = kept && stored.clock() - kept.at < REUSE_MS
    const total = isKept ? kept.total : Number(bundle.total)
    if (!isKept) counts.set(request.path, { at: stored.clock(), total })
    return total >= Number(bundle.total) ? response : respond(200, cut(bundle, total))
  }
}

function cut(bundle: Readonly<Record<string, unknown>>, total: number): object {
  const link = Array.isArray(bundle.link) ? bundle.link.filter(({ relation }) => relation !== 'next') : []
  return { ...bundle, total, link, entry: entriesOf(bundle).slice(0, total) }
}

/** A page with a `next` has no total unless the request asks for one. */
export const noTotalOfPages: Behaviour = () => async (request, next) => {
  const response = await next(request)
  const isCounted = request.params.some(([name, value]) => name === '_total' && value === 'accurate')
  if (!isSearch(request) || response.status !== 200 || isCounted) return response
  const isPaged = /"relation":"next"/.test(response.body)
  return isPaged ? { ...response, body: response.body.replace(/"total":\d+,?/, '') } : response
}
