import type { FastifyInstance } from 'fastify'
import { askApi } from '../api/ask.ts'
import { patientRow } from '../api/patient.ts'
import { openVisit } from '../api/visit.ts'
import type { AppContext } from '../context.ts'
import { findWholeFailure, loadRecord } from './load-record.ts'
import { recordPage } from './page.ts'
import { failurePage } from './states.ts'

/** `/`: the demo app. Loading it asks the session API, and so counts as use of the session. */
export function addDemoRoute(app: FastifyInstance, context: AppContext): void {
  // An open page asks whether its record may still be shown, by reading the patient. That is no use of the session.
  app.head('/', async (request, reply) => {
    const visit = await openVisit(context, request, { extendsSession: false })
    const patient = visit.ok ? await askApi(patientRow, visit.value) : visit
    const isShown = patient.ok || patient.failure.kind === 'missing-scope'
    const status = isShown ? 200 : failurePage({ context, reference: request.id }, patient.failure).status
    return reply.code(status).send()
  })

  app.get('/', async (request, reply) => {
    const visit = await openVisit(context, request, { extendsSession: true })
    if (!visit.ok) {
      const { page, status } = failurePage({ context, reference: request.id }, visit.failure)
      return reply.sendPage(page, { status })
    }
    const record = await loadRecord(visit.value)
    const failure = findWholeFailure(record)
    if (!failure) return reply.sendPage(recordPage(visit.value, record))
    const { fhirBaseUrl } = visit.value.session
    const { page, status } = failurePage({ context, reference: request.id, fhirBaseUrl }, failure)
    return reply.sendPage(page, { status })
  })
}
