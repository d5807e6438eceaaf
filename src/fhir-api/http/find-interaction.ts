import type { FastifyRequest } from 'fastify'
import { formatAsForm, type Interaction, type Misunderstood, parseInteraction } from '../../fhir/index.ts'

/** Where the FHIR base is. */
export interface BaseLocation {
  /** As clients know it, without a trailing slash. */
  readonly baseUrl: string
  readonly basePath: string
}

/** What a request means, by what has been read of it. */
export function findInteraction(
  request: FastifyRequest,
  { baseUrl, basePath }: BaseLocation,
): Interaction | Misunderstood {
  const { url = '' } = request.raw
  const at = url.indexOf('?')
  return parseInteraction({
    method: request.method,
    baseUrl,
    path: (at < 0 ? url : url.slice(0, at)).slice(basePath.length),
    query: at < 0 ? '' : url.slice(at + 1),
    headers: request.headers,
    form: formatAsForm(request.headers['content-type'], readBytes(request)),
  })
}

export function readBytes(request: FastifyRequest): Uint8Array | undefined {
  return request.body instanceof Uint8Array ? request.body : undefined
}
