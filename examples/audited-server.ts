/**
 * The express server, with its requests in the audit trail of the auth server. In the folder of Sallyport:
 *
 *     npm run -s sallyport -- client add --id my-server --audit --secret
 *     CLIENT_SECRET=… node examples/audited-server.ts
 */
import { createServer } from 'node:http'
import { createTrailSender } from 'sallyport/interceptor'
import { expressServer } from './express-server.ts'

const {
  AUTH_URL: authUrl = 'http://localhost:9000',
  FHIR_BASE_URL: fhirBaseUrl = 'http://localhost:3000/fhir',
  CLIENT_ID: clientId = 'my-server',
  CLIENT_SECRET: secret = '',
  PORT = '3000',
} = process.env

const trail = createTrailSender({
  authUrl,
  fhirBaseUrl,
  clientId,
  credential: { secret },
  onError: error => console.error(String(error)),
})
const server = createServer(expressServer(authUrl, fhirBaseUrl, { trail }))
server.listen(Number(PORT), '127.0.0.1', () => console.log('Listening', server.address()))

process.once('SIGTERM', () => {
  server.close(async () => {
    // Without this, the records of the last half second would be lost.
    await trail.close()
    process.exit()
  })
  server.closeIdleConnections()
})
