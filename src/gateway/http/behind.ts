import type { Asked, Behind } from '../../door/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { handle } from '../handle.ts'
import { answerOf, type Problem } from '../problem.ts'
import { parseExact } from '../upstream/exact.ts'
import { send } from './send.ts'

/** The gateway as it stands behind the door. */
export function behindDoor(context: Context, recorded: boolean): Behind<Answer, Problem> {
  const callOf = (asked: Asked): Call => ({
    ...asked,
    exactBody: asked.text === undefined ? undefined : parseExact(asked.text),
    mayStream: true,
    recorded,
  })
  return {
    perform: asked => handle(context, callOf(asked)),
    answerOf,
    rosterOf: (asked, panels, patients) => context.rosterOf(context, callOf(asked), panels, patients),
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
