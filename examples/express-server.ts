/** An express FHIR server that registers the interceptor with the auth server's address: the three lines are marked. */
import express, { type Express } from 'express'
import { expressInterceptor, type HostOptions, serveInTurn } from 'sallyport/interceptor' // 1
import { notFound, Records } from './records.ts'

export function expressServer(
  authUrl: string,
  fhirBaseUrl: string,
  more: Partial<HostOptions> = {},
): Express {
  const app = express()
  const records = new Records()
  app.use(serveInTurn)
  app.get('/health', (_request, response) => void response.send('ok'))
  app.use('/fhir', express.json({ type: ['application/fhir+json', 'application/json'] }))
  const interceptor = expressInterceptor({ authUrl, fhirBaseUrl, ...more }) // 2
  app.use('/fhir', interceptor) // 3
  app.get(
    '/fhir/:type',
    ({ params, query }, response) => void response.json(records.search(params.type, query)),
  )
  app.get('/fhir/:type/:id', ({ params }, response) => {
    const record = records.read(params.type, params.id)
    response.status(record ? 200 : 404).json(record ?? notFound)
  })
  app.post('/fhir/:type', ({ body }, response) => void response.status(201).json(records.create(body)))
  return app
}
