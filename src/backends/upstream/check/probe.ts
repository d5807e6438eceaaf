import { isRecord, parseJson, toRecord } from '../../../core/index.ts'

export interface CheckRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE'
  /** Below the FHIR base URL: `/Patient/1`. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface CheckResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly text: string
  readonly milliseconds: number
}

export type Send = (request: CheckRequest) => Promise<CheckResponse>

/** `handled`: the upstream differs from R4, and the gateway is right nevertheless. */
export type Level = 'ok' | 'handled' | 'unsafe' | 'unknown'

export interface Finding {
  readonly check: string
  readonly level: Level
  readonly result: string
}

export type Json = Readonly<Record<string, unknown>>

/** Sends requests to the upstream, and removes the resources that it created there. */
export interface Probe {
  readonly baseUrl: string
  readonly tag: string
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<CheckResponse>
  head(path: string): Promise<CheckResponse>
  search(type: string, query: Readonly<Record<string, string>>): Promise<CheckResponse>
  /** Creates a resource with the tag of this run. */
  create(resource: Json, headers?: Readonly<Record<string, string>>): Promise<CheckResponse>
  put(path: string, resource: Json, headers?: Readonly<Record<string, string>>): Promise<CheckResponse>
  remove(path: string, headers?: Readonly<Record<string, string>>): Promise<CheckResponse>
  transaction(entries: readonly Json[]): Promise<CheckResponse>
  /** Deletes everything that was created; the paths of resources that are left. */
  cleanUp(): Promise<readonly string[]>
}

export const TAG_SYSTEM = 'urn:sallyport:check'
const LOCATION = /([A-Z]\w+\/[A-Za-z0-9.-]+)(?:\/_history\/[^/]+)?$/
const JSON_TYPE = 'application/fhir+json'

export function createProbe(send: Send, baseUrl: string, tag: string): Probe {
  const made: string[] = []
  const withTag = (resource: Json) =>
    JSON.stringify({ ...resource, meta: { tag: [{ system: TAG_SYSTEM, code: tag }] } })
  const ask = (request: CheckRequest) =>
    send({
      ...request,
      headers: {
        accept: JSON_TYPE,
        ...(request.body !== undefined && { 'content-type': JSON_TYPE }),
        ...request.headers,
      },
    })

  async function create(resource: Json, headers = {}): Promise<CheckResponse> {
    const path = `/${resource.resourceType}`
    const response = await ask({ method: 'POST', path, headers, body: withTag(resource) })
    const id = findId(response)
    if (id !== undefined && response.status === 201) made.push(`${path}/${id}`)
    return response
  }

  async function put(path: string, resource: Json, headers = {}): Promise<CheckResponse> {
    const response = await ask({
      method: 'PUT',
      path,
      headers,
      body: withTag({ ...resource, id: path.split('/')[2] }),
    })
    if (isOk(response) && !made.includes(path)) made.push(path)
    return response
  }

  async function transaction(entries: readonly Json[]): Promise<CheckResponse> {
    const entry = entries.map(it => ({ ...it, resource: JSON.parse(withTag(it.resource as Json)) }))
    const body = JSON.stringify({ resourceType: 'Bundle', type: 'transaction', entry })
    const response = await ask({ method: 'POST', path: '', body })
    for (const { response: part } of toList(parse(response).entry)) {
      const [, path] = LOCATION.exec(String(toRecord(part).location)) ?? []
      if (path !== undefined && String(toRecord(part).status).startsWith('201')) made.push(`/${path}`)
    }
    return response
  }

  async function search(type: string, query: Readonly<Record<string, string>>): Promise<CheckResponse> {
    return ask({
      method: 'POST',
      path: `/${type}/_search`,
      body: new URLSearchParams(query).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'cache-control': 'no-cache' },
    })
  }

  /** Not every response names the new resource, so that the tag is searched for as well. */
  async function listMade(): Promise<readonly string[]> {
    const listed = new Set(made.toReversed())
    for (const type of ['Observation', 'Patient'])
      for (const id of findIds(await search(type, { _tag: `${TAG_SYSTEM}|${tag}` })))
        listed.add(`/${type}/${id}`)
    return [...listed]
  }

  async function cleanUp(): Promise<readonly string[]> {
    const left: string[] = []
    for (const path of await listMade()) {
      const { status } = await ask({ method: 'DELETE', path })
      if (status >= 300 && status !== 404 && status !== 410) left.push(path)
    }
    return left
  }

  return {
    baseUrl,
    tag,
    create,
    put,
    search,
    transaction,
    cleanUp,
    get: (path, headers = {}) => ask({ method: 'GET', path, headers }),
    head: path => ask({ method: 'HEAD', path }),
    remove: (path, headers = {}) => ask({ method: 'DELETE', path, headers }),
  }
}

export function parse({ text }: CheckResponse): Json {
  return toRecord(parseJson(text))
}

/** The id of a new resource, from its URL or its content. */
export function findId(response: CheckResponse): string | undefined {
  const location = response.headers.location ?? response.headers['content-location'] ?? ''
  const [, id] = /\/([A-Za-z0-9.-]{1,64})(?:\/_history\/[^/]*)?$/.exec(location) ?? []
  const { id: written } = parse(response)
  return id ?? (typeof written === 'string' ? written : undefined)
}

export function findVersion(response: CheckResponse): string | undefined {
  const [, version] = /"(.*)"/.exec(response.headers.etag ?? '') ?? []
  const { versionId } = toRecord(parse(response).meta)
  return version ?? (typeof versionId === 'string' ? versionId : undefined)
}

/** The ids of the matches of a search. */
export function findIds(response: CheckResponse): readonly string[] {
  return toList(parse(response).entry).map(it => String(toRecord(it.resource).id))
}

export function toList(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

export function isOk({ status }: CheckResponse): boolean {
  return status >= 200 && status < 300
}

/** Whether a condition was the reason for a refusal. */
export function isConflict({ status }: CheckResponse): boolean {
  return status === 409 || status === 412 || status === 428
}
