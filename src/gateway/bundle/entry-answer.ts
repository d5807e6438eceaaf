import { STATUS_CODES } from 'node:http'
import { isRecord, parseExact } from '../../fhir/index.ts'
import type { Answer } from '../answer.ts'

/** The answer to one entry as an entry: what went wrong is its `outcome`, what was asked for is its `resource`. */
export function entryAnswer({ status, headers, body }: Answer): object {
  const { location, etag } = headers
  const lastModified = instantOf(headers['last-modified'])
  const said: unknown = typeof body === 'string' ? parseExact(body) : undefined
  const isOutcome = isRecord(said) && said.resourceType === 'OperationOutcome'
  return {
    ...(location !== undefined && { fullUrl: location.replace(/\/_history\/[^/]+$/, '') }),
    ...(said !== undefined && !isOutcome && { resource: said }),
    response: {
      status: `${status} ${STATUS_CODES[status] ?? ''}`.trim(),
      ...(location !== undefined && { location }),
      ...(etag !== undefined && { etag }),
      ...(lastModified !== undefined && { lastModified }),
      ...(isOutcome && { outcome: said }),
    },
  }
}

/** What the upstream calls a time may be none. */
function instantOf(time: string | undefined): string | undefined {
  const date = new Date(time ?? '')
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}
