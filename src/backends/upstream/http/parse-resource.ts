import { fail, findJsonExcess, isResource, type Resource } from '../../../fhir/index.ts'
import { RESPONSE_VALUES } from '../limits.ts'
import type { Problem } from '../problem.ts'
import type { UpstreamResponse } from './client.ts'

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\b/i

/** The resource that a successful answer holds, or that it holds none. */
export function parseResource({ headers, text }: UpstreamResponse): Resource | Problem {
  if (!JSON_TYPE.test(String(headers['content-type'] ?? ''))) return broken('it is not JSON')
  const excess = findJsonExcess(text, RESPONSE_VALUES)
  if (excess) return fail({ problem: 'upstream-broken', why: excess, excess })
  try {
    const resource: unknown = JSON.parse(text)
    return isResource(resource) ? resource : broken('it is no resource')
  } catch {
    return broken('its JSON is invalid')
  }
}

export function isJson(contentType: string | undefined): boolean {
  return JSON_TYPE.test(contentType ?? '')
}

function broken(why: string): Problem {
  return fail({ problem: 'upstream-broken', why })
}
