import { type Entry, fail } from '../../../fhir/index.ts'
import type { Call } from '../call.ts'
import type { Problem } from '../problem.ts'

/** An entry as a request of its own: judged by itself, whatever the Bundle was judged (contract 5.2). */
export function entryCall(bundle: Call, entry: Entry): Call | Problem {
  const { interaction, body, preconditions } = entry
  if (interaction.kind === 'misunderstood') return fail({ ...interaction, problem: 'misunderstood' })
  const decision = bundle.authenticated.decide(interaction)
  if (!decision.allowed) return fail({ problem: 'refused', refused: decision })
  return { ...bundle, interaction, body, preconditions, access: decision.access, isEntry: true }
}
