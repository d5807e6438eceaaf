import { Readable } from 'node:stream'
import { isFailure, isRecord } from '../../../core/index.ts'
import { failFor, isExcess, isResource, type Resource, readPartial } from '../../../fhir/index.ts'
import {
  type Failure,
  type FhirRequest,
  failBroken,
  type StatedVersion,
  type StoredVersion,
} from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'
import { buildGet, buildRead } from '../http/build-request.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import type { UpstreamResponse } from '../http/read-response.ts'
import { isJson, parseResource, toFailure } from '../http/response.ts'
import { LONG_STRING } from '../limits.ts'

/** Reads a resource, or one version of it, from the upstream. A signal ends the read. */
export async function readVersion(
  context: GatewayContext,
  request: FhirRequest,
  type: string,
  id: string,
  version?: string,
  signal?: AbortSignal,
): Promise<StoredVersion | undefined | Failure> {
  const path = `/${type}/${id}${version === undefined ? '' : `/_history/${version}`}`
  const outgoing = buildRead(request, path)
  const response = await context.upstream.skim({ ...outgoing, signal }, { longest: LONG_STRING })
  if (isFailure(response)) return response
  switch (response.status) {
    case 200:
      if (!isJson(response.headers['content-type'])) return failBroken('it is not JSON')
      return response.bytes === 0
        ? new UpstreamVersion(type, id, response)
        : createLargeVersion(type, id, response, () => streamVersion(context, request, outgoing, response))
    case 404:
      return undefined
    case 410: {
      const deletion = findDeletion(response)
      if (deletion !== undefined) context.deletions.set(`${type}/${id}`, deletion)
      return new DeletedVersion(type, id, deletion)
    }
    default:
      return toFailure(response, request)
  }
}

/** The version of a deletion, which the 410 of some servers names in its `Location`. */
function findDeletion({ headers: { location } }: UpstreamResponse): number | undefined {
  const version = /\/_history\/([1-9]\d{0,8})$/.exec(location ?? '')?.[1]
  return version === undefined ? undefined : Number(version)
}

/**
 * The content of a resource before it was deleted; undefined where the upstream does not return it, a failure where no
 * further request may be sent to it. The version before the deletion is read first: right after a delete, the history of
 * some servers does not contain it.
 */
export async function readLast(
  context: GatewayContext,
  request: FhirRequest,
  type: string,
  id: string,
): Promise<Resource | Failure | undefined> {
  const known = context.deletions.get(`${type}/${id}`)
  const before = known === undefined ? undefined : await readBefore(context, request, type, id, known)
  if (before) return before
  const response = await context.upstream.ask(buildGet(request, `/${type}/${id}/_history?_count=2`))
  if (isFailure(response)) return isExcess(response) ? response : undefined
  if (response.status !== 200) return undefined
  const bundle = parseResource(response)
  if (isFailure(bundle) || !Array.isArray(bundle.entry)) return undefined
  const found = bundle.entry
    .flatMap(entry => (isRecord(entry) && isResource(entry.resource) ? [entry.resource] : []))
    .find(it => it.resourceType === type && it.id === id)
  return found ?? (known === undefined ? readBeforeDeletion(context, request, type, id) : undefined)
}

/** Finds the version of the deletion first. */
async function readBeforeDeletion(
  context: GatewayContext,
  request: FhirRequest,
  type: string,
  id: string,
): Promise<Resource | Failure | undefined> {
  const current = await readVersion(context, request, type, id)
  if (isFailure(current)) return isExcess(current) ? current : undefined
  const known = context.deletions.get(`${type}/${id}`)
  return known === undefined ? undefined : readBefore(context, request, type, id, known)
}

async function readBefore(
  context: GatewayContext,
  request: FhirRequest,
  type: string,
  id: string,
  deletion: number,
): Promise<Resource | undefined> {
  if (deletion < 2) return undefined
  const version = await readVersion(context, request, type, id, String(deletion - 1))
  const resource = version && !isFailure(version) && !version.deleted ? version.parse() : undefined
  return resource && !isFailure(resource) ? resource : undefined
}

/** A version of which only the part without long strings is in memory. */
function createLargeVersion(
  type: string,
  id: string,
  response: UpstreamResponse,
  stream: () => Promise<Readable | Failure>,
): StoredVersion | Failure {
  const resource = parseResource(response)
  if (isFailure(resource)) return resource
  const partial = readPartial(response.text)
  return partial
    ? new UpstreamVersion(type, id, { ...response, text: partial.text }, { ...partial, stream })
    : new UpstreamVersion(type, id, response)
}

/** Streams a version that was checked without its long strings, if it is still the same one. */
async function streamVersion(
  { upstream }: GatewayContext,
  request: FhirRequest,
  outgoing: UpstreamRequest,
  { headers: { etag } }: UpstreamResponse,
): Promise<Readable | Failure> {
  if (etag === undefined) return UNVERSIONED
  const response = await upstream.pass(outgoing)
  if (isFailure(response)) return response
  const { status, headers, body } = response
  const isSame = status === 200 && headers.etag === etag && isJson(headers['content-type'])
  if (isSame) return typeof body === 'string' ? Readable.from([Buffer.from(body)]) : body
  if (typeof body !== 'string') body.destroy()
  return status === 200 ? CHANGED : toFailure({ status, headers, text: '' }, request)
}

const UNVERSIONED = failFor('read-unversioned')

const CHANGED = failFor('changed-while-read')

/** A resource that is too large for memory. */
interface LargeContent {
  /** Without its long strings. */
  readonly resource: Resource
  readonly stream: () => Promise<Readable | Failure>
}

/** A version that the upstream has returned. */
export class UpstreamVersion implements StoredVersion {
  readonly type: string
  readonly id: string
  readonly deleted = false
  readonly isTrusted = false
  readonly stream: StoredVersion['stream']
  readonly #answer: UpstreamResponse
  readonly #partial: Resource | undefined
  #resource: Resource | Failure | undefined
  #stated: StatedVersion | undefined

  constructor(type: string, id: string, answer: UpstreamResponse, large?: LargeContent) {
    this.type = type
    this.id = id
    this.stream = large?.stream
    this.#answer = answer
    this.#partial = large?.resource
  }

  get text(): string {
    return this.#answer.text
  }

  get etag(): string | undefined {
    return this.#answer.headers.etag ?? this.stated.etag
  }

  get lastModified(): number | undefined {
    const header = this.#answer.headers['last-modified']
    return header === undefined ? this.stated.lastModified : parseTime(header)
  }

  get order(): number {
    return this.stated.lastModified ?? Number.NaN
  }

  get stated(): StatedVersion {
    this.#stated ??= readStated(this.parse())
    return this.#stated
  }

  recall(stated: StatedVersion): void {
    this.#stated = stated
  }

  parse(): Resource | Failure {
    this.#resource ??= this.#parse()
    return this.#resource
  }

  #parse(): Resource | Failure {
    const resource = this.#partial ?? parseResource(this.#answer)
    if (isFailure(resource)) return resource
    return resource.resourceType === this.type && resource.id === this.id
      ? resource
      : failBroken('it answered with a different resource')
  }
}

function readStated(resource: Resource | Failure): StatedVersion {
  const { versionId, lastUpdated } = (isFailure(resource) ? undefined : resource.meta) ?? {}
  return {
    etag: typeof versionId === 'string' ? `W/"${versionId}"` : undefined,
    lastModified: typeof lastUpdated === 'string' ? parseTime(lastUpdated) : undefined,
  }
}

function parseTime(text: string): number | undefined {
  const time = Date.parse(text)
  return Number.isNaN(time) ? undefined : time
}

/** Its last content is requested only where it decides. */
export class DeletedVersion implements StoredVersion {
  readonly type: string
  readonly id: string
  readonly deleted = true
  readonly isTrusted = false
  readonly order = Number.NaN
  readonly etag = undefined
  readonly lastModified = undefined
  readonly text = undefined

  /** The version of the deletion, where the upstream names it. */
  readonly deletion: number | undefined

  constructor(type: string, id: string, deletion: number | undefined) {
    this.type = type
    this.id = id
    this.deletion = deletion
  }

  parse(): Failure {
    return failFor('gone', { type: this.type, id: this.id })
  }
}
