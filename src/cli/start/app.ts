import type { FastifyInstance } from 'fastify'
import type { Keeping, Parts } from './parts.ts'

export async function openApp({ settings, logger, tls }: Parts, keeping: Keeping): Promise<FastifyInstance> {
  const { appServer } = await import('../../session/index.ts')
  return appServer({ ...settings, ...keeping, logger, ...(tls && { tls }) })
}
