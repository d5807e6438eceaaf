import type { FastifyInstance } from 'fastify'
import { type Behind, type Door, openDoor } from '../../door/index.ts'
import type { Answer } from '../answer.ts'
import type { Context } from '../call.ts'
import { handle } from '../handle.ts'
import { answerOf, type Problem } from '../problem.ts'
import { parseExact } from '../upstream/exact.ts'
import { send } from './send.ts'

export interface RouteOptions extends Omit<Door<Answer, Problem>, 'behind'> {
  readonly context: Context
}

/** Serves every address below the FHIR base. */
export function serveGateway(app: FastifyInstance, { context, ...options }: RouteOptions): void {
  openDoor(app, { ...options, behind: behind(context, options.audit !== undefined) })
}

function behind(context: Context, recorded: boolean): Behind<Answer, Problem> {
  return {
    perform: asked =>
      handle(context, {
        ...asked,
        exactBody: asked.text === undefined ? undefined : parseExact(asked.text),
        mayStream: true,
        recorded,
      }),
    answerOf,
    answerFrom: trail => ({ ...trail, headers: {} }),
    told: ({ status, headers, body, before }) => ({
      status,
      answer: typeof body === 'string' ? body : undefined,
      location: headers.location,
      before,
    }),
    send,
  }
}
