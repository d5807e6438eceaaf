import type { Behind } from '../../door/index.ts'
import type { Answer } from '../answer.ts'
import type { Context } from '../call.ts'
import { handle } from '../handle.ts'
import { answerOf, type Problem } from '../problem.ts'
import { send } from './send.ts'

/** The gateway as it stands behind the door. */
export function behindDoor(context: Context): Behind<Answer, Problem> {
  return {
    perform: asked => handle(context, asked),
    answerOf,
    rosterOf: (asked, panels, patients) => context.rosterOf(context, asked, panels, patients),
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
