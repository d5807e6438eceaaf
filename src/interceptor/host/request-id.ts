import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'

const HEADER = 'x-request-id'
const REQUEST_ID = /^[\w.:/+=-]{1,128}$/

/** Gives the response the id of the request, or a new one, unless the host has already done so. */
export function setRequestId(request: IncomingMessage, response: ServerResponse): void {
  if (!response.hasHeader(HEADER))
    response.setHeader(HEADER, findRequestId(request, response) ?? randomUUID())
}

/** The id that the host or the client gave the request, or the trace id (W3C Trace Context, 3.2). */
export function findRequestId({ headers }: IncomingMessage, response: ServerResponse): string | undefined {
  const [, trace] = /^[\da-f]{2}-([\da-f]{32})-/.exec(String(headers.traceparent)) ?? []
  return [response.getHeader(HEADER), headers[HEADER], trace].find(
    (id): id is string => typeof id === 'string' && REQUEST_ID.test(id),
  )
}
