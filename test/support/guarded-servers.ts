import type { FastifyInstance } from 'fastify'
import type { FhirAudit } from '../../src/audit/index.ts'
import { type FhirServerOptions, fhirServer } from '../../src/backends/sqlite/index.ts'
import { createGateway } from '../../src/backends/upstream/index.ts'
import { NO_WAIT, startUpstream } from '../../src/backends/upstream/testing/start-gateway.ts'
import type { Authenticator } from '../../src/smart/index.ts'
import { freePorts } from './free-ports.ts'

export type OpenGuarded = (
  guard: Authenticator,
  baseUrl: string,
  audit?: FhirAudit,
  more?: Pick<FhirServerOptions, 'exports' | 'clock' | 'ways'>,
) => Promise<FastifyInstance>

/** `npm run test:export -- <FHIR base URL>`: the gateway in front of that server, in place of others. */
const UPSTREAM = process.env.TEST_UPSTREAM

/** The two FHIR servers that a guard stands before: what holds on one holds on the other. */
export const GUARDED_SERVERS: Readonly<Record<string, OpenGuarded>> = UPSTREAM
  ? { [`the gateway in front of ${UPSTREAM}`]: openBefore(UPSTREAM) }
  : {
      'the embedded FHIR server': (guard, baseUrl, audit, more) =>
        fhirServer({ baseUrl, dataFile: ':memory:', guard, audit, smartConfiguration: {}, ...more }),

      'the gateway': async (guard, baseUrl, audit, more) => {
        const [port = 0] = await freePorts(1)
        const upstreamUrl = `http://127.0.0.1:${port}/upstream`
        const upstream = await fhirServer({
          baseUrl: upstreamUrl,
          dataFile: ':memory:',
          smartConfiguration: {},
        })
        await upstream.listen({ port, host: '127.0.0.1' })
        const options = { profile: 'strict', smartConfiguration: {} } as const
        const app = await createGateway({
          baseUrl,
          upstreamUrl,
          guard,
          audit,
          conceal: NO_WAIT,
          ...options,
          ...more,
        })
        app.addHook('onClose', () => upstream.close())
        return app
      },
    }

/** The gateway as it is deployed: the upstream is a separate process. */
export const openApart: OpenGuarded = async (guard, baseUrl) => {
  const upstream = await startUpstream()
  const options = { profile: 'strict', smartConfiguration: {} } as const
  const app = await createGateway({
    baseUrl,
    upstreamUrl: upstream.url,
    guard,
    conceal: NO_WAIT,
    ...options,
  })
  app.addHook('onClose', async () => {
    await upstream.end()
  })
  return app
}

/** The gateway in front of a server that runs already. What is created is removed in the end. */
function openBefore(upstreamUrl: string): OpenGuarded {
  return async (guard, baseUrl, audit, more) => {
    const options = { smartConfiguration: {}, conceal: NO_WAIT } as const
    const app = await createGateway({ baseUrl, upstreamUrl, guard, audit, ...options, ...more })
    const made = new Set<string>()
    app.addHook('onResponse', async ({ method, url }, { statusCode }) => {
      if (method === 'PUT' && statusCode === 201) made.add(url.slice(new URL(baseUrl).pathname.length))
    })
    app.addHook('onClose', async () => {
      for (const path of [...made].reverse()) await fetch(upstreamUrl + path, { method: 'DELETE' })
    })
    return app
  }
}
