import type { FastifyInstance } from 'fastify'
import type { Keeping, Parts } from './parts.ts'
import { createReportingFetch } from './reporting-fetch.ts'

export async function openApp({ settings, logger, tls }: Parts, keeping: Keeping): Promise<FastifyInstance> {
  const { createAppServer } = await import('../../session/index.ts')
  return createAppServer({
    ...settings,
    ...keeping,
    logger,
    fetch: createReportingFetch(fetch, logger),
    ...(tls && { tls }),
  })
}
