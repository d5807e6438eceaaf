import type { FastifyInstance } from 'fastify'
import type { Store } from '../store/index.ts'

/**
 * While the database is away a request is answered with 503, a page or JSON, instead of 500: it is worth trying again.
 * Drivers have many names for it, so the database itself is asked.
 */
export function answerWhileAway(app: FastifyInstance, store: Store): void {
  const answer = app.errorHandler
  app.setErrorHandler(async (error, request, reply) => {
    if (isOurs(error) && !(await isThere(store))) {
      request.log.warn({ err: error }, 'Database away')
      return reply.sendProblem({ kind: 'unavailable' })
    }
    return answer(error, request, reply)
  })
}

// What fastify refuses by itself (a body over the limit, …) has a status; what a query throws has none.
function isOurs(error: unknown): boolean {
  return !(error instanceof Error && 'statusCode' in error)
}

async function isThere(store: Store): Promise<boolean> {
  try {
    await store.ping()
    return true
  } catch {
    return false
  }
}
