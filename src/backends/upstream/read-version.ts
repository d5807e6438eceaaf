import { fail, isRecord, isResource, type Resource } from '../../fhir/index.ts'
import {
  type Failure,
  type FhirRequest,
  isFailure,
  type StatedVersion,
  type StoredVersion,
} from '../../fhir-api/index.ts'
import type { GatewayContext } from './context.ts'
import { buildGet } from './http/build-request.ts'
import type { UpstreamResponse } from './http/client.ts'
import { toFailure } from './http/failure.ts'
import { isJson, parseResource } from './http/parse-resource.ts'

/** Reads a resource, or one version of it, from the upstream. */
export async function readVersion(
  { upstream }: GatewayContext,
  request: FhirRequest,
  type: string,
  id: string,
  version?: string,
): Promise<StoredVersion | undefined | Failure> {
  const path = `/${type}/${id}${version === undefined ? '' : `/_history/${version}`}`
  const answer = await upstream.ask(buildGet(request, path))
  if (isFailure(answer)) return answer
  switch (answer.status) {
    case 200:
      return isJson(answer.headers['content-type'])
        ? new UpstreamVersion(type, id, answer)
        : fail({ problem: 'upstream-broken', why: 'it is not JSON' })
    case 404:
      return undefined
    case 410:
      return new DeletedVersion(type, id)
    default:
      return toFailure(answer, request.access)
  }
}

/**
 * The content of a resource before it was deleted; undefined where the upstream does not return it, a failure where no
 * further request may be sent to it.
 */
export async function readLast(
  { upstream }: GatewayContext,
  request: FhirRequest,
  type: string,
  id: string,
): Promise<Resource | Failure | undefined> {
  const answer = await upstream.ask(buildGet(request, `/${type}/${id}/_history?_count=2`))
  if (isFailure(answer)) return answer.problem === 'too-costly' ? answer : undefined
  if (answer.status !== 200) return undefined
  const bundle = parseResource(answer)
  if (isFailure(bundle) || !Array.isArray(bundle.entry)) return undefined
  return bundle.entry
    .flatMap(entry => (isRecord(entry) && isResource(entry.resource) ? [entry.resource] : []))
    .find(it => it.resourceType === type && it.id === id)
}

/** A version that the upstream has returned. */
export class UpstreamVersion implements StoredVersion {
  readonly type: string
  readonly id: string
  readonly deleted = false
  readonly isTrusted = false
  readonly #answer: UpstreamResponse
  #resource: Resource | Failure | undefined
  #stated: StatedVersion | undefined

  constructor(type: string, id: string, answer: UpstreamResponse) {
    this.type = type
    this.id = id
    this.#answer = answer
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
    const resource = parseResource(this.#answer)
    if (isFailure(resource)) return resource
    return resource.resourceType === this.type && resource.id === this.id
      ? resource
      : fail({ problem: 'upstream-broken', why: 'it answered with a different resource' })
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
class DeletedVersion implements StoredVersion {
  readonly type: string
  readonly id: string
  readonly deleted = true
  readonly isTrusted = false
  readonly order = Number.NaN
  readonly etag = undefined
  readonly lastModified = undefined
  readonly text = undefined

  constructor(type: string, id: string) {
    this.type = type
    this.id = id
  }

  parse(): Failure {
    return fail({ problem: 'gone', type: this.type, id: this.id })
  }
}
