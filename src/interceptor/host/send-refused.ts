import type { ServerResponse } from 'node:http'
import type { Refused } from '../../fhir/index.ts'

// What the host set for every answer; all else was about the answer that is not sent.
const KEPT = /^(?:access-control-.*|vary|x-request-id|strict-transport-security|x-content-type-options)$/

/** Sends a refusal in the place of whatever the host has prepared. */
export function sendRefused(response: ServerResponse, refused: Refused): ServerResponse {
  for (const name of response.getHeaderNames()) if (!KEPT.test(name)) response.removeHeader(name)
  const body = Buffer.from(JSON.stringify(refused.outcome))
  response.statusCode = refused.status
  response.statusMessage = ''
  for (const [name, value] of Object.entries(refused.headers)) response.setHeader(name, value)
  response.setHeader('content-type', 'application/fhir+json; charset=utf-8')
  response.setHeader('content-length', body.length)
  response.setHeader('cache-control', 'no-store')
  return response.end(body)
}
