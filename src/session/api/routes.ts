import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { exactText } from '../../fhir/index.ts'
import type { AppContext } from '../context.ts'
import { type Failure, type Result, toResponse } from '../failure.ts'
import { auditSession } from '../sessions/audit-session.ts'
import type { Session } from '../sessions/session.ts'
import { askApi } from './ask.ts'
import { openApi } from './openapi.ts'
import type { ApiRow } from './row.ts'
import { apiRows } from './rows.ts'
import { openVisit } from './visit.ts'

type Query = Readonly<Record<string, unknown>>

/** `/api/**`: each row at its address, and the document that describes them. */
export function addApiRoutes(app: FastifyInstance, context: AppContext): void {
  for (const row of apiRows as readonly ApiRow[]) {
    app.get<{ Querystring: Query }>(row.path, (request, reply) => answer(context, row, request, reply))
  }
  const document = openApi(context.settings.appUrl, context.sessionCookie.name)
  app.get('/api/openapi.json', async () => document)
}

async function answer(
  context: AppContext,
  row: ApiRow,
  request: FastifyRequest<{ Querystring: Query }>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const visit = await openVisit(context, request, row)
  const result = visit.ok ? await askApi(row, visit.value, request.query) : visit
  await auditRequest(context, row, request, visit.ok ? visit.value.session : undefined, result)
  if (!result.ok) return sendFailure(reply, result.failure)
  return reply.type('application/json; charset=utf-8').send(exactText(result.value))
}

/** `/api/session` is what a countdown polls: it shows nothing of a record and is not kept. */
async function auditRequest(
  context: AppContext,
  { path, extendsSession }: ApiRow,
  request: FastifyRequest,
  session: Session | undefined,
  result: Result<unknown>,
): Promise<void> {
  if (!extendsSession) return
  const answer = result.ok ? undefined : toResponse(result.failure)
  const status = answer?.status ?? 200
  await auditSession(context, session, {
    kind: 'api',
    status,
    allowed: status !== 401 && status !== 403 && status !== 409,
    method: request.method,
    request: path.slice(1),
    reason: answer?.body.issue[0]?.details.text,
    requestId: request.id,
    address: request.ip,
  })
}

function sendFailure(reply: FastifyReply, failure: Failure): FastifyReply {
  const { status, body } = toResponse(failure)
  if (status >= 500) reply.log.warn({ failure: failure.kind }, 'Cannot answer')
  return reply.code(status).type('application/json; charset=utf-8').send(body)
}
