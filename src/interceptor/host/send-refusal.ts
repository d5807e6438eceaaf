import type { ServerResponse } from 'node:http'
import type { Refused } from '../../fhir/index.ts'

// Headers that the host sets for every response. All others describe the response that is not sent.
const KEPT_HEADERS =
  /^(?:access-control-.*|vary|x-request-id|strict-transport-security|x-content-type-options)$/

/** Sends a refusal instead of the response that the host has prepared. */
export function sendRefusal(response: ServerResponse, refused: Refused): ServerResponse {
  for (const name of response.getHeaderNames()) if (!KEPT_HEADERS.test(name)) response.removeHeader(name)
  const body = Buffer.from(JSON.stringify(refused.outcome))
  response.statusCode = refused.status
  response.statusMessage = ''
  for (const [name, value] of Object.entries(refused.headers)) response.setHeader(name, value)
  response.setHeader('content-type', 'application/fhir+json; charset=utf-8')
  response.setHeader('content-length', body.length)
  response.setHeader('cache-control', 'no-store')
  return response.end(body)
}
