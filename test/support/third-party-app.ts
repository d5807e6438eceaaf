import { once } from 'node:events'
import { createServer } from 'node:http'
import express from 'express'
import { CLIENT_DEFAULTS, ClientFault, insertClient } from '../../src/auth/index.ts'
import type { Stack } from './stack.ts'

export interface ThirdPartyApp {
  readonly url: string
  close(): Promise<void>
}

const SCOPE = 'launch openid fhirUser offline_access patient/Patient.rs patient/Observation.rs'

/** A third-party app: its own server, registered as a public client that is not first-party. */
export async function startThirdPartyApp(
  stack: Stack,
  name: string,
  addRoutes: (app: express.Express, url: string) => void,
): Promise<ThirdPartyApp> {
  const app = express()
  const server = createServer(app)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('Cannot tell the port of the app')
  const url = `http://localhost:${address.port}`
  app.get('/favicon.ico', (_request, response) => response.status(204).end())
  addRoutes(app, url)
  await register(stack, name, url)
  return {
    url,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function register({ store }: Stack, name: string, url: string): Promise<void> {
  const app = {
    ...CLIENT_DEFAULTS,
    authMethod: 'none' as const,
    scope: SCOPE,
    name,
    redirectUris: [`${url}/callback`],
    launchUrl: `${url}/launch`,
  }
  const id = name.toLowerCase().replaceAll(' ', '-')
  const added = await store.db.transaction().execute(trx => insertClient(trx, id, { app, now: Date.now() }))
  if (added instanceof ClientFault) throw new Error(added.text)
}
