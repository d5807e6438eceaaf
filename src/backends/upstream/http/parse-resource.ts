import { fail, findJsonExcess, isResource, type Resource } from '../../../fhir/index.ts'
import type { Failure } from '../../../fhir-api/index.ts'
import { RESPONSE_VALUES } from '../limits.ts'
import type { UpstreamResponse } from './client.ts'

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\b/i

export function parseResource({ headers, text }: UpstreamResponse): Resource | Failure {
  if (!JSON_TYPE.test(String(headers['content-type'] ?? ''))) return failBroken('it is not JSON')
  const excess = findJsonExcess(text, RESPONSE_VALUES)
  if (excess) return fail({ problem: 'upstream-broken', why: excess, excess })
  try {
    const resource: unknown = JSON.parse(text)
    return isResource(resource) ? resource : failBroken('it is not a resource')
  } catch {
    return failBroken('its JSON is invalid')
  }
}

export function isJson(contentType: string | undefined): boolean {
  return JSON_TYPE.test(contentType ?? '')
}

function failBroken(why: string): Failure {
  return fail({ problem: 'upstream-broken', why })
}
