import type { FastifyRequest } from 'fastify'
import { formOf, type Interaction, type Misunderstood, parseInteraction } from '../fhir/index.ts'

/** What a request means, by what has been read of it. */
export function interactionOf(request: FastifyRequest, basePath: string): Interaction | Misunderstood {
  const { url = '' } = request.raw
  const at = url.indexOf('?')
  return parseInteraction({
    method: request.method,
    path: (at < 0 ? url : url.slice(0, at)).slice(basePath.length),
    query: at < 0 ? '' : url.slice(at + 1),
    headers: request.headers,
    form: formOf(request.headers['content-type'], bytesOf(request)),
  })
}

export function bytesOf(request: FastifyRequest): Uint8Array | undefined {
  return request.body instanceof Uint8Array ? request.body : undefined
}
