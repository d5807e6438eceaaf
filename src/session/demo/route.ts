import type { FastifyInstance } from 'fastify'
import { openVisit } from '../api/visit.ts'
import type { AppContext } from '../context.ts'
import { loadRecord, wholeFailure } from './load-record.ts'
import { recordPage } from './page.ts'
import { failurePage } from './states.ts'

/** `/`: the demo app. Loading it asks the session API, and so counts as use of the session. */
export function demoRoute(app: FastifyInstance, context: AppContext): void {
  app.get('/', async (request, reply) => {
    const visit = await openVisit(context, request, { extendsSession: true })
    if (!visit.ok) {
      const { page, status } = failurePage({ context, reference: request.id }, visit.failure)
      return reply.sendPage(page, { status })
    }
    const record = await loadRecord(visit.value)
    const failure = wholeFailure(record)
    if (!failure) return reply.sendPage(recordPage(visit.value, record))
    const { fhirBaseUrl } = visit.value.session
    const { page, status } = failurePage({ context, reference: request.id, fhirBaseUrl }, failure)
    return reply.sendPage(page, { status })
  })
}
