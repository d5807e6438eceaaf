import type { FastifyInstance, RouteOptions } from 'fastify'
import { createDocument } from '../web/http/index.ts'
import type { Api, Endpoint } from './endpoint.ts'
import { createOpenApi } from './openapi.ts'

/** Adds the routes of an API, and its OpenAPI document. */
export function addEndpoints<One extends Endpoint>(
  app: FastifyInstance,
  api: Api<One>,
  define: (endpoint: One) => Omit<RouteOptions, 'method' | 'url'>,
): void {
  for (const endpoint of api.endpoints)
    app.route({ method: endpoint.method, url: `${api.prefix}${endpoint.path}`, ...define(endpoint) })
  const sendDocument = createDocument(createOpenApi(api))
  app.get(`${api.prefix}/openapi.json`, (_request, reply) => sendDocument(reply))
}
