import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AppContext } from '../context.ts'
import { type Failure, responseOf } from '../failure.ts'
import { askApi } from './ask.ts'
import { openApi } from './openapi.ts'
import type { ApiRow } from './row.ts'
import { apiRows } from './rows.ts'
import { openVisit } from './visit.ts'

type Query = Readonly<Record<string, unknown>>

/** `/api/**`: each row at its address, and the document that describes them. */
export function apiRoutes(app: FastifyInstance, context: AppContext): void {
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
  if (!visit.ok) return sendFailure(reply, visit.failure)
  const result = await askApi(row, visit.value, request.query)
  if (!result.ok) return sendFailure(reply, result.failure)
  return reply.type('application/json; charset=utf-8').send(result.value)
}

function sendFailure(reply: FastifyReply, failure: Failure): FastifyReply {
  const { status, body } = responseOf(failure)
  if (status >= 500) reply.log.warn({ failure: failure.kind }, 'Cannot answer')
  return reply.code(status).type('application/json; charset=utf-8').send(body)
}
