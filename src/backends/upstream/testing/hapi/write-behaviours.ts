import { STATUS_CODES } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { isRecord } from '../../../../core/index.ts'
import { formatExact, parseExact } from '../../../../fhir/index.ts'
import {
  type Behaviour,
  type HapiEntry,
  type HapiRequest,
  type HapiResponse,
  isTransaction,
  isUpdate,
  listEntries,
  type Next,
  parseBody,
  refuse,
  respond,
  type StoredServer,
} from './behaviour.ts'

async function exists(stored: StoredServer, path: string): Promise<boolean> {
  return (await stored.get(path)).status === 200
}

/** The version of a resource or of its deletion. */
export async function findVersion(stored: StoredServer, path: string): Promise<string | undefined> {
  const { status, body } = await stored.get(`${path}/_history`, [['_count', '1']])
  const [newest] = status === 200 ? listEntries(parseBody(body)) : []
  return /"(.*)"/.exec(newest?.response?.etag ?? '')?.[1]
}

/** Changes the entries of a transaction; the digits of its decimals stay. */
function mapEntries(request: HapiRequest, change: (entry: HapiEntry) => HapiEntry): HapiRequest {
  const bundle = parseExact(request.body)
  if (!isRecord(bundle) || !Array.isArray(bundle.entry)) return request
  return { ...request, body: formatExact({ ...bundle, entry: bundle.entry.map(change) }) }
}

function omit<T extends object>(value: T, ...names: readonly string[]): T {
  return Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name))) as T
}

/** `If-Match` on `PUT`: another version, also that of a deletion, causes 409; for a resource that never existed it is ignored. */
export const ifMatchConflicts: Behaviour = stored => {
  const isStale = async (path: string, etag: string | undefined) => {
    const current = etag === undefined ? undefined : await findVersion(stored, path)
    return current !== undefined && !etag?.endsWith(`"${current}"`)
  }
  async function update(request: HapiRequest, next: Next): Promise<HapiResponse> {
    if (await isStale(request.path, request.headers['if-match'])) return conflict()
    return next({ ...request, headers: omit(request.headers, 'if-match') })
  }
  async function transact(request: HapiRequest, next: Next): Promise<HapiResponse> {
    for (const { request: entry } of listEntries(parseBody(request.body)))
      if (entry.method === 'PUT' && (await isStale(entry.url ?? '', entry.ifMatch))) return conflict()
    return next(dropConditions(request, 'PUT', 'ifMatch'))
  }
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = (write: () => Promise<HapiResponse>) => {
    const response = last.then(write)
    last = response
    return response
  }
  return async (request, next) => {
    if (isTransaction(request)) return inTurn(() => transact(request, next))
    if (!isUpdate(request)) return next(request)
    // Two creators of one id may both succeed: neither sees the other.
    const isNew = (await findVersion(stored, request.path)) === undefined
    if (!isNew) return inTurn(() => update(request, next))
    await setImmediate()
    return next({ ...request, headers: omit(request.headers, 'if-match') })
  }
}

function conflict(): HapiResponse {
  return refuse(409, '0989', 'Trying to update a resource but this is not the current version')
}

function dropConditions(request: HapiRequest, method: string, name: string): HapiRequest {
  return mapEntries(request, entry =>
    entry.request.method === method ? { ...entry, request: omit(entry.request, name) } : entry,
  )
}

/** `If-None-Match: *` on `PUT` is ignored: it overwrites. */
export const ifNoneMatchIgnored: Behaviour = () => async (request, next) => {
  if (isUpdate(request)) return next({ ...request, headers: omit(request.headers, 'if-none-match') })
  return next(isTransaction(request) ? dropConditions(request, 'PUT', 'ifNoneMatch') : request)
}

/** `_cascade` and `_expunge` on `DELETE` are carried out, also in Bundles. */
export const deletesCascade: Behaviour = () => async (request, next) => {
  const isSpecial = ([name]: readonly [string, string]) => name === '_cascade' || name === '_expunge'
  if (request.method === 'DELETE')
    return next({ ...request, params: request.params.filter(it => !isSpecial(it)) })
  if (request.method !== 'POST' || request.path !== '') return next(request)
  return next(
    mapEntries(request, entry => {
      const url = entry.request?.url?.replace(/\?_(?:cascade|expunge)=\w+$/, '') ?? ''
      return entry.request?.method === 'DELETE' ? { ...entry, request: { ...entry.request, url } } : entry
    }),
  )
}

/** A resource that others refer to is not deleted (409), unless the same transaction deletes those too. */
export const referredIsKept: Behaviour = stored => async (request, next) => {
  const listed = isTransaction(request)
    ? listEntries(parseBody(request.body))
    : [{ request: toEntry(request) }]
  const deleted = new Set<string>()
  for (const { request: entry } of listed)
    if (entry.method === 'DELETE')
      for (const it of await findDeleted(stored, entry.url ?? '')) deleted.add(it)
  for (const local of deleted) {
    const [type = '', id = ''] = local.split('/')
    const { body } = await stored.get(type, [
      ['_id', id],
      ['_revinclude', '*'],
    ])
    const [referring] = listFound(body).filter(it => it !== local && !deleted.has(it))
    if (referring !== undefined)
      return refuse(409, '0550', `Unable to delete ${local} because ${referring} has a reference to it`)
  }
  return next(request)
}

function toEntry({ method, path, params }: HapiRequest): Readonly<Record<string, string>> {
  const query = new URLSearchParams(params.map(([name, value]) => [name, value])).toString()
  return { method, url: query === '' ? path : `${path}?${query}` }
}

async function findDeleted(stored: StoredServer, url: string): Promise<readonly string[]> {
  const [path = '', query] = url.split('?')
  if (query === undefined) return path.includes('/') ? [path.replace(/\/_history\/.*/, '')] : []
  return listFound((await stored.get(path, [...new URLSearchParams(query)])).body)
}

function listFound(bundle: string): readonly string[] {
  return listEntries(parseBody(bundle)).flatMap(({ resource }) =>
    resource ? [`${resource.resourceType}/${resource.id}`] : [],
  )
}

/** An entry of a Bundle with an absolute URL is 400, also with the server's own. */
export const absoluteEntryUrlsRefused: Behaviour = () => async (request, next) => {
  const isBundle = request.method === 'POST' && request.path === ''
  const entries = isBundle ? listEntries(parseBody(request.body)) : []
  return entries.some(it => /^https?:/.test(it.request?.url ?? ''))
    ? refuse(400, '2006', 'Unable to process the URL of an entry')
    : next(request)
}

/** A Bundle creates resources by the type of their content, whatever the URL of the entry says. */
export const bundlesCreateByContent: Behaviour = () => async (request, next) => {
  if (request.method !== 'POST' || request.path !== '') return next(request)
  return next(
    mapEntries(request, entry => {
      const type = entry.request?.method === 'POST' ? entry.resource?.resourceType : undefined
      return typeof type === 'string' ? { ...entry, request: { ...entry.request, url: type } } : entry
    }),
  )
}

/** A conditional delete searches first and deletes then. Versions that were written in between are deleted. */
export const deletesInSteps: Behaviour = stored => async (request, next) => {
  if (isTransaction(request)) {
    const urls = new Map<string, readonly string[]>()
    for (const { request: entry } of listEntries(parseBody(request.body)))
      if (entry.method === 'DELETE' && entry.url?.includes('?'))
        urls.set(entry.url, await findDeleted(stored, entry.url))
    if (urls.size > 0) await stored.betweenSteps()
    return next(
      mapEntries(request, entry => {
        const [url] = urls.get(entry.request.url ?? '') ?? []
        return url === undefined ? entry : { ...entry, request: { ...entry.request, url } }
      }),
    )
  }
  if (request.method !== 'DELETE' || request.path.includes('/')) return next(request)
  const [path, ...others] = await findDeleted(stored, toEntry(request).url ?? '')
  await stored.betweenSteps()
  return next(path === undefined || others.length > 0 ? request : { ...request, path, params: [] })
}

/**
 * `If-Match` on `DELETE` is ignored, but a version in the URL is compared with the current one. The response is 200 with an
 * OperationOutcome.
 */
export const deleteUnconditional: Behaviour = () => async (request, next) => {
  if (isTransaction(request)) return next(dropConditions(request, 'DELETE', 'ifMatch'))
  if (request.method !== 'DELETE') return next(request)
  const [path = '', version] = request.path.split('/_history/')
  const headers = omit(request.headers, 'if-match')
  const response = await next({
    ...request,
    path,
    headers: version === undefined ? headers : { ...headers, 'if-match': `W/"${version}"` },
  })
  if (response.status === 412 && version !== undefined)
    return refuse(409, '0961', `Trying to delete ${request.path} but this is not the current version`)
  if (response.status === 412) return refuse(412, '0962', 'Failed to DELETE: several resources match')
  const issue = [{ severity: 'information', code: 'informational', diagnostics: 'Successfully deleted' }]
  return response.status < 300 ? respond(200, { resourceType: 'OperationOutcome', issue }) : response
}

/** `Prefer: return=minimal` is answered without body and content type. */
export const minimalHasNoType: Behaviour = () => async (request, next) => {
  const response = await next(request)
  const isMinimal = request.headers.prefer?.includes('return=minimal') && request.path !== ''
  if (!isMinimal || response.status >= 300 || request.method === 'GET') return response
  const { location } = response.headers
  return {
    status: response.status,
    headers: {
      ...omit(response.headers, 'content-type', 'transfer-encoding'),
      ...(location !== undefined && { 'content-location': location }),
    },
    body: '',
  }
}

/** A `PUT` under a numeric id is 400. */
export const numericIdsRefused: Behaviour = stored => async (request, next) => {
  const refusal = refuse(400, '0960', 'Can not create resource with ID: no client may assign a numeric ID')
  const isNumeric = async (url: string | undefined) =>
    url !== undefined && /^\w+\/\d+$/.test(url) && !(await exists(stored, url))
  if (isUpdate(request) && (await isNumeric(request.path))) return refusal
  if (isTransaction(request))
    for (const { request: entry } of listEntries(parseBody(request.body)))
      if (entry.method === 'PUT' && (await isNumeric(entry.url))) return refusal
  return next(request)
}

/** A `PUT` that changes nothing is 200 with the version as before. */
export const unchangedKeepsVersion: Behaviour = stored => async (request, next) => {
  if (!isUpdate(request)) return next(request)
  const current = await stored.get(request.path)
  return current.status === 200 && isDeepStrictEqual(toContent(current.body), toContent(request.body))
    ? current
    : next(request)
}

function toContent(text: string): object {
  const { meta, ...content } = parseBody(text)
  return { ...content, meta: isRecord(meta) ? omit(meta, 'versionId', 'lastUpdated') : {} }
}

/** Absolute references in bodies are 400, also those to the server itself. */
export const absoluteReferencesRefused: Behaviour = () => async (request, next) => {
  const found = hasBody(request) && listReferences(parseBody(request.body)).find(it => /^https?:/.test(it[1]))
  return found
    ? refuse(400, '0507', `Resource contains external reference at path "${found[0]}"`)
    : next(request)
}

/** References to resources that do not exist are 400. */
export const danglingReferencesRefused: Behaviour = stored => async (request, next) => {
  if (!hasBody(request)) return next(request)
  const body = parseBody(request.body)
  const made = new Set(isTransaction(request) ? listEntries(body).map(it => it.request.url) : [])
  for (const [path, reference] of listReferences(body)) {
    const [local = ''] = /^[A-Z]\w*\/[\w.-]+/.exec(reference) ?? []
    if (local !== '' && !made.has(local) && !(await exists(stored, local)))
      return refuse(400, '1094', `Resource ${local} not found, specified in path: ${path}`)
  }
  return next(request)
}

// A batch is a request for each of its entries.
function hasBody(request: HapiRequest): boolean {
  return (
    isUpdate(request) ||
    isTransaction(request) ||
    (request.method === 'POST' && /^[A-Z]\w+$/.test(request.path))
  )
}

function listReferences(value: unknown, path = ''): readonly (readonly [path: string, reference: string])[] {
  if (Array.isArray(value)) return value.flatMap(it => listReferences(it, path))
  if (!isRecord(value)) return []
  const from = typeof value.resourceType === 'string' ? value.resourceType : path
  return Object.entries(value).flatMap(([name, item]) =>
    name === 'reference' && typeof item === 'string'
      ? [[from, item] as const]
      : listReferences(item, from === '' ? name : `${from}.${name}`),
  )
}

/** A transaction is answered with relative locations, and with versions in the place of entity tags. */
export const transactionsAnswerRelative: Behaviour =
  ({ baseUrl }) =>
  async (request, next) => {
    const { body, ...response } = await next(request)
    if (!isTransaction(request) || response.status !== 200) return { ...response, body }
    return {
      ...response,
      body: body
        .replaceAll(`"location":"${baseUrl}/`, '"location":"')
        .replaceAll(/"etag":"W\/\\"(\w+)\\""/g, '"etag":"$1"'),
    }
  }

/** A batch is a request for each of its entries, so that all behaviours apply to them. */
export const batchesSendEntries: Behaviour =
  ({ baseUrl }) =>
  async (request, next) => {
    if (request.method !== 'POST' || request.path !== '' || parseBody(request.body).type !== 'batch')
      return next(request)
    const bundle = parseExact(request.body)
    const entry: object[] = []
    for (const it of isRecord(bundle) ? listEntries(bundle) : [])
      entry.push(toBatchEntry(baseUrl, await next(toRequest(request, it))))
    const body = formatExact({ resourceType: 'Bundle', type: 'batch-response', entry })
    return { ...respond(200, {}), body }
  }

function toRequest({ headers }: HapiRequest, { resource, request }: HapiEntry): HapiRequest {
  const { method = '', url = '', ifMatch, ifNoneMatch, ifNoneExist } = request
  const [path = '', query = ''] = url.split('?')
  return {
    method,
    path,
    params: [...new URLSearchParams(query)],
    headers: {
      ...headers,
      ...(ifMatch !== undefined && { 'if-match': ifMatch }),
      ...(ifNoneMatch !== undefined && { 'if-none-match': ifNoneMatch }),
      ...(ifNoneExist !== undefined && { 'if-none-exist': ifNoneExist }),
    },
    body: resource === undefined ? '' : formatExact(resource),
  }
}

function toBatchEntry(baseUrl: string, { status, headers, body }: HapiResponse): object {
  const { location, etag } = headers
  const resource = body === '' ? undefined : parseExact(body)
  return {
    ...(status < 300 && { resource }),
    response: {
      status: `${status} ${STATUS_CODES[status]}`,
      ...(location !== undefined && { location: location.replace(`${baseUrl}/`, '') }),
      ...(etag !== undefined && { etag: /"(.*)"/.exec(etag)?.[1] }),
      ...(status >= 300 && { outcome: resource }),
    },
  }
}
