import type { FastifyInstance } from 'fastify'
import type { Keeping, Parts } from './parts.ts'
import { tellingFetch } from './telling-fetch.ts'

export async function openApp({ settings, logger, tls }: Parts, keeping: Keeping): Promise<FastifyInstance> {
  const { appServer } = await import('../../session/index.ts')
  return appServer({
    ...settings,
    ...keeping,
    logger,
    fetch: tellingFetch(fetch, logger),
    ...(tls && { tls }),
  })
}
