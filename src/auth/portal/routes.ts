import type { FastifyInstance } from 'fastify'
import type { AuthContext } from '../context.ts'
import { requireClinician } from '../login/login.ts'
import { readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { findSearchFault } from './patient-queries.ts'
import { sendPortal } from './send-portal.ts'

/** `GET /portal`: find a patient, choose the encounter, launch an app. */
export function addPortalRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(
    paths.portal,
    requireClinician(context, async (request, reply, login) => {
      const query = readParameters(request.query)
      const [search, text] = [query.get('search')?.trim() || undefined, query.get('app')?.trim() || undefined]
      const fault = findSearchFault(search) ?? findSearchFault(text)
      if (fault !== undefined) return reply.sendProblem({ kind: 'malformed', text: fault })
      return sendPortal(reply, context, login, {
        search,
        app: text,
        page: query.get('page'),
        patient: query.get('patient'),
        client: query.get('client'),
        encounters: query.get('encounters'),
      })
    }),
  )
}
