import type { UpstreamRequest } from './exchange.ts'

/** The first value of a parameter of a search, percent-encoded, in the URL or in the form. */
export function findParam(
  { path, body = '' }: Pick<UpstreamRequest, 'path' | 'body'>,
  name: string,
): string | undefined {
  const pattern = buildPattern(name)
  return (pattern.exec(path) ?? pattern.exec(body))?.[1]
}

/** A search with a new value of a parameter. */
export function setParam(outgoing: UpstreamRequest, name: string, value: string): UpstreamRequest {
  const { path, body } = outgoing
  const pattern = buildPattern(name)
  const param = `${name}=${value}`
  if (pattern.test(path)) return { ...outgoing, path: path.replace(pattern, param) }
  if (body === undefined) return { ...outgoing, path: `${path}${path.includes('?') ? '&' : '?'}${param}` }
  return { ...outgoing, body: pattern.test(body) ? body.replace(pattern, param) : `${body}&${param}` }
}

/** Finds a parameter and its value. */
function buildPattern(name: string): RegExp {
  return new RegExp(`(?<=^|[?&])${name}=([^&]*)`)
}

/** Whether a search requests further resources beside its matches. */
export function requestsIncludes({ path, body = '' }: Pick<UpstreamRequest, 'path' | 'body'>): boolean {
  const pattern = /(?:^|[?&])_(?:rev)?include(?:[:=]|%3A)/i
  return pattern.test(path) || pattern.test(body)
}
