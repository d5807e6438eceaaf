import type { Answer } from './answer.ts'
import type { Call, Context, InteractionOf, Kind } from './call.ts'
import { operation } from './interactions/operation.ts'
import type { Problem } from './problem.ts'

/** The interactions that the FHIR API does not perform itself. */
const HANDLERS: {
  readonly [K in Kind]?: (context: Context, call: Call<InteractionOf<K>>) => Promise<Answer | Problem>
} = {
  operation,
}

export async function perform<K extends Kind>(
  context: Context,
  call: Call<InteractionOf<K>>,
): Promise<Answer | Problem> {
  const { kind } = call.interaction
  const handler = HANDLERS[kind as K]
  if (!handler) throw new Error(`Cannot perform ${kind}: the FHIR API does`)
  return handler(context, call)
}
