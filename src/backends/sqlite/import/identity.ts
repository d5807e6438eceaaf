import { createHash } from 'node:crypto'
import { toPlain } from '../../../fhir/index.ts'
import { isObject } from './parse-json.ts'

type Fields = Readonly<Record<string, unknown>>

/** The id of a resource that was sent without one: made from its content, so that a second import finds the first. */
export function contentId(resource: Fields): string {
  return createHash('sha256')
    .update(JSON.stringify(toPlain(resource)))
    .digest('hex')
    .slice(0, 32)
}

/** The resource, with an id where it has none. What is not a resource stays as it is, to be refused as such. */
export function identified(resource: unknown): unknown {
  if (!isObject(resource) || typeof resource.resourceType !== 'string' || resource.id !== undefined)
    return resource
  return { ...resource, id: contentId(resource) }
}

const namedBy = {
  urn: /^urn:(?:uuid|oid):([A-Za-z0-9\-.]{1,64})$/,
  address: /^https?:\/\/.*\/[A-Z][A-Za-z]+\/([A-Za-z0-9\-.]{1,64})$/,
  request: /^[A-Z][A-Za-z]+\/([A-Za-z0-9\-.]{1,64})$/,
}

/** The id that a Bundle gives its entry: the resource's own, else that of the request, else that of its full address. */
export function entryId(resource: Fields, fullUrl: unknown, requestUrl: unknown): string {
  if (typeof resource.id === 'string') return resource.id
  const named =
    namedBy.request.exec(String(requestUrl))?.[1] ??
    namedBy.urn.exec(String(fullUrl))?.[1] ??
    namedBy.address.exec(String(fullUrl))?.[1]
  return named ?? contentId(resource)
}
