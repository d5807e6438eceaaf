import type { IncomingMessage, ServerResponse } from 'node:http'
import { ANY_ORIGIN, CONFIGURATION_HEADERS } from './host/configuration.ts'
import { hostGuard } from './host/guard-exchange.ts'
import type { HostOptions } from './host/host.ts'
import { sendRefused } from './host/send-refused.ts'

/** A request of express or connect: Node's own, with the mount path and the parsed body. */
interface MountedRequest extends IncomingMessage {
  readonly baseUrl?: string
  readonly body?: unknown
}

export interface Middleware {
  (request: MountedRequest, response: ServerResponse, next: (error?: unknown) => void): void
  /** Ends the refreshing of the key set. */
  close(): void
}

/**
 * Middleware for express, connect and the like, which guards all that comes after it: mount it at the FHIR base,
 * after the body parser (what is written can only be judged when it was read) and before the routes.
 */
export function expressInterceptor(options: HostOptions): Middleware {
  const host = hostGuard(options)
  const middleware = async (
    request: MountedRequest,
    response: ServerResponse,
    next: (error?: unknown) => void,
  ) => {
    const url = `${request.baseUrl ?? ''}${request.url ?? ''}`
    const told = await host.configuration(request, url)
    if (told?.allowed) return void sendConfiguration(response, told.body)
    const refused = told ?? (await host.guard({ request, response, url, body: request.body }))
    if (refused) sendRefused(response, refused)
    else next()
  }
  return Object.assign(
    (request: MountedRequest, response: ServerResponse, next: (error?: unknown) => void) => {
      middleware(request, response, next).catch(next)
    },
    { close: () => host.close() },
  )
}

function sendConfiguration(response: ServerResponse, body: string): void {
  if (!response.hasHeader(ANY_ORIGIN[0])) response.setHeader(...ANY_ORIGIN)
  response.writeHead(200, CONFIGURATION_HEADERS).end(body)
}
