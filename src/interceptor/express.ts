import type { IncomingMessage, ServerResponse } from 'node:http'
import { sendRefusal } from './host/check-response.ts'
import { ANY_ORIGIN, CONFIGURATION_HEADERS } from './host/configuration.ts'
import { createHostGuard } from './host/host-guard.ts'
import type { HostOptions } from './host/host-options.ts'

/** A request of express or connect: Node's own with the mount path and the parsed body. */
interface MountedRequest extends IncomingMessage {
  readonly baseUrl?: string
  readonly body?: unknown
}

export interface Middleware {
  (request: MountedRequest, response: ServerResponse, next: (error?: unknown) => void): void
  /** Stops refreshing the key set. */
  close(): void
}

/**
 * Middleware for express, connect and compatible frameworks. Mount it at the FHIR base, after the body parser, because
 * writes are checked by their content, and before the routes.
 */
export function expressInterceptor(options: HostOptions): Middleware {
  const host = createHostGuard(options)
  const handleRequest = async (
    request: MountedRequest,
    response: ServerResponse,
    next: (error?: unknown) => void,
  ) => {
    const url = `${request.baseUrl ?? ''}${request.url ?? ''}`
    const configuration = await host.readConfiguration(request, url)
    if (configuration?.allowed) return void sendConfiguration(response, configuration.body)
    const refused = configuration ?? (await host.authorize({ request, response, url, body: request.body }))
    if (refused) sendRefusal(response, refused)
    else next()
  }
  return Object.assign(
    (request: MountedRequest, response: ServerResponse, next: (error?: unknown) => void) => {
      handleRequest(request, response, next).catch(next)
    },
    { close: () => host.close() },
  )
}

function sendConfiguration(response: ServerResponse, body: string): void {
  if (!response.hasHeader(ANY_ORIGIN[0])) response.setHeader(...ANY_ORIGIN)
  response.writeHead(200, CONFIGURATION_HEADERS).end(body)
}
