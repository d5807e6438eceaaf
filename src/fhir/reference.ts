import { isResourceType } from './definitions.ts'

/** A resource of this server. */
export interface ResourceReference {
  readonly type: string
  readonly id: string
  readonly version?: string
}

const relative = /^([A-Z][A-Za-z]+)\/([A-Za-z0-9\-.]{1,64})(?:\/_history\/([A-Za-z0-9\-.]{1,64}))?$/

/**
 * Parses a reference to a resource of the server at `baseUrl`: `Patient/1`, `Patient/1/_history/2`, or the same with
 * the base URL. Undefined for `#contained`, `urn:` and URLs of other servers, whatever they end with.
 */
export function parseReference(text: string, baseUrl: string): ResourceReference | undefined {
  const [, type, id, version] = relative.exec(removeBase(text, baseUrl)) ?? []
  if (type === undefined || id === undefined || !isResourceType(type)) return undefined
  return version === undefined ? { type, id } : { type, id, version }
}

function removeBase(text: string, baseUrl: string): string {
  if (!text.startsWith(baseUrl)) return text
  const end = baseUrl.endsWith('/') ? baseUrl.length - 1 : baseUrl.length
  return text[end] === '/' ? text.slice(end + 1) : text
}
