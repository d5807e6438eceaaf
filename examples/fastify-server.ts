/** A fastify FHIR server that registers the interceptor with the auth server's address: the three lines are marked. */
import fastify, { type FastifyInstance } from 'fastify'
import { fastifyInterceptor, serveInTurn } from 'sallyport/interceptor' // 1
import { type Entry, notFound, Records } from './records.ts'

interface Route {
  readonly Params: { readonly type: string; readonly id: string }
  readonly Querystring: { readonly [name: string]: unknown }
  readonly Body: Entry
}

export function fastifyServer(authUrl: string, fhirBaseUrl: string): FastifyInstance {
  const app = fastify()
  const records = new Records()
  app.addHook('onRequest', (request, reply, done) => serveInTurn(request.raw, reply.raw, done))
  app.get('/health', async () => 'ok')
  app.register(async fhir => {
    const interceptor = fastifyInterceptor({ authUrl, fhirBaseUrl }) // 2
    await fhir.register(interceptor) // 3
    const json = fhir.getDefaultJsonParser('error', 'error')
    fhir.addContentTypeParser('application/fhir+json', { parseAs: 'string' }, json)
    fhir.get<Route>('/fhir/:type', async ({ params, query }) => records.search(params.type, query))
    fhir.get<Route>('/fhir/:type/:id', async ({ params }, reply) => {
      const record = records.read(params.type, params.id)
      return reply.code(record ? 200 : 404).send(record ?? notFound)
    })
    fhir.post<Route>('/fhir/:type', async ({ body }, reply) => reply.code(201).send(records.create(body)))
  })
  return app
}
