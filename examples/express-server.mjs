/**
 * An Express FHIR server that knows nothing of tokens, scopes and patients, protected by the interceptor: the three lines are
 * marked. In an empty folder with this file:
 *
 *     npm init -y && npm install express /path/to/sallyport-interceptor-<version>.tgz
 *     node express-server.mjs
 *
 * With CLIENT_SECRET, its requests are recorded in the audit trail of the auth server. Register the server there first:
 * `npx sallyport client add --id my-server --audit --secret`.
 */
import express from 'express'
import { createTrailSender, expressInterceptor, serveInTurn } from 'sallyport-interceptor' // 1

const {
  AUTH_URL: authUrl = 'http://localhost:9000',
  FHIR_BASE_URL: fhirBaseUrl = 'http://localhost:3000/fhir',
  CLIENT_ID: clientId = 'my-server',
  CLIENT_SECRET: secret,
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
const onError = error => console.error(String(error))
const trail = secret && createTrailSender({ authUrl, fhirBaseUrl, clientId, credential: { secret }, onError })

const app = express()
app.use(serveInTurn)
app.get('/health', (_request, response) => response.send('ok'))
app.use('/fhir', express.json({ type: ['application/fhir+json', 'application/json'] }))
const interceptor = expressInterceptor({
  authUrl,
  fhirBaseUrl,
  contexts: ['patient', 'user'],
  stored: async (type, id) => find(type, id),
  onError,
  ...(trail && { trail }),
}) // 2
app.use('/fhir', interceptor, interceptor.handleError) // 3

app.get('/fhir/:type', ({ params: { type }, query: { patient, _id } }, response) => {
  const matches = it =>
    it.resourceType === type &&
    (patient === undefined || it.subject?.reference === `Patient/${patient}`) &&
    (_id === undefined || it.id === _id)
  const entry = records.filter(matches).map(resource => ({ resource }))
  response.json({ resourceType: 'Bundle', type: 'searchset', total: entry.length, entry })
})
app.get('/fhir/:type/:id', ({ params: { type, id } }, response) => {
  const found = find(type, id)
  if (found) response.json(found)
  else
    response
      .status(404)
      .json({ resourceType: 'OperationOutcome', issue: [{ severity: 'error', code: 'not-found' }] })
})
app.post('/fhir/:type', ({ body }, response) => {
  const created = { ...body, id: `n${records.length}` }
  records.push(created)
  response.status(201).location(`${fhirBaseUrl}/${created.resourceType}/${created.id}`).json(created)
})
app.put('/fhir/:type/:id', ({ body, params: { type, id } }, response) => {
  const at = records.findIndex(it => it.resourceType === type && it.id === id)
  records.splice(at < 0 ? records.length : at, 1, body)
  response.status(at < 0 ? 201 : 200).json(body)
})

// Without this, Express sends an HTML page, for example for a URL with %zz.
app.use('/fhir', (error, _request, response, next) => {
  if (response.headersSent) return next(error)
  const { status = 500, message } = error
  const isOfClient = status < 500
  if (!isOfClient) onError(error)
  const code = isOfClient ? 'invalid' : 'exception'
  const diagnostics = isOfClient ? message : 'The request could not be processed.'
  const issue = [{ severity: 'error', code, diagnostics }]
  response.status(status).type('application/fhir+json').json({ resourceType: 'OperationOutcome', issue })
})

const server = app.listen(Number(PORT), () => {
  console.log(`Listening on port ${server.address().port}`)
})

process.once('SIGTERM', () => {
  server.close(async () => {
    interceptor.close()
    // Without this, the records of the last half second would be lost.
    await trail?.close()
  })
  server.closeIdleConnections()
})
