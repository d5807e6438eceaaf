import type { Asked, Behind } from '../../door/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { handle } from '../handle.ts'
import { answerOf, type Problem } from '../problem.ts'
import { parseExact } from '../upstream/exact.ts'
import { send } from './send.ts'

/** The gateway as it stands behind the door. */
export function behindDoor(context: Context): Behind<Answer, Problem> {
  return {
    perform: asked => handle(context, callOf(asked)),
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

/** With its body as it is sent on. */
function callOf(asked: Asked): Call {
  return asked.text === undefined ? asked : { ...asked, exactBody: parseExact(asked.text) }
}
