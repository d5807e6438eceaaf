/**
 * A Fastify FHIR server that knows nothing of tokens, scopes and patients, protected by the interceptor: the three lines are
 * marked. In an empty folder with this file:
 *
 *     npm init -y && npm install fastify /path/to/sallyport-interceptor-<version>.tgz
 *     node fastify-server.mjs
 */
import fastify from 'fastify'
import { fastifyInterceptor, serveInTurn } from 'sallyport-interceptor' // 1

const {
  AUTH_URL: authUrl = 'http://localhost:9000',
  FHIR_BASE_URL: fhirBaseUrl = 'http://localhost:3000/fhir',
  PORT = '3000',
} = process.env

const active = {
  coding: [{ system: 'http://terminology.hl7.org/CodeSystem/condition-clinical', code: 'active' }],
}
const records = [
  { resourceType: 'Patient', id: '1', name: [{ family: 'Okafor', given: ['Ada'] }] },
  { resourceType: 'Patient', id: '2', name: [{ family: 'Lindqvist', given: ['Per'] }] },
  makeCondition('c1', '1', 'Asthma'),
  makeCondition('c2', '2', 'Gout'),
]

function makeCondition(id, patient, text) {
  const subject = { reference: `Patient/${patient}` }
  return { resourceType: 'Condition', id, subject, clinicalStatus: active, code: { text } }
}

const find = (type, id) => records.find(it => it.resourceType === type && it.id === id)

const app = fastify()
app.addHook('onRequest', (request, reply, done) => serveInTurn(request.raw, reply.raw, done))
app.get('/health', async () => 'ok')
app.register(async fhir => {
  const interceptor = fastifyInterceptor({
    authUrl,
    fhirBaseUrl,
    contexts: ['patient', 'user'],
    stored: async (type, id) => find(type, id),
    onError: error => console.error(String(error)),
  }) // 2
  await fhir.register(interceptor) // 3
  const json = fhir.getDefaultJsonParser('error', 'error')
  fhir.addContentTypeParser('application/fhir+json', { parseAs: 'string' }, json)

  fhir.get('/fhir/:type', async ({ params: { type }, query: { patient, _id } }) => {
    const matches = it =>
      it.resourceType === type &&
      (patient === undefined || it.subject?.reference === `Patient/${patient}`) &&
      (_id === undefined || it.id === _id)
    const entry = records.filter(matches).map(resource => ({ resource }))
    return { resourceType: 'Bundle', type: 'searchset', total: entry.length, entry }
  })
  fhir.get('/fhir/:type/:id', async ({ params: { type, id } }, reply) => {
    const found = find(type, id)
    if (found) return found
    reply.code(404)
    return { resourceType: 'OperationOutcome', issue: [{ severity: 'error', code: 'not-found' }] }
  })
  fhir.post('/fhir/:type', async ({ body }, reply) => {
    const created = { ...body, id: `n${records.length}` }
    records.push(created)
    reply.code(201).header('location', `${fhirBaseUrl}/${created.resourceType}/${created.id}`)
    return created
  })
  fhir.put('/fhir/:type/:id', async ({ body, params: { type, id } }, reply) => {
    const at = records.findIndex(it => it.resourceType === type && it.id === id)
    records.splice(at < 0 ? records.length : at, 1, body)
    reply.code(at < 0 ? 201 : 200)
    return body
  })
})

await app.listen({ port: Number(PORT) })
console.log(`Listening on port ${app.server.address().port}`)
process.once('SIGTERM', () => app.close())
