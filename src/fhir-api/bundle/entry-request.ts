import { auditRefusal, isAboutAudit } from '../../audit/index.ts'
import { type Entry, type EntryInteraction, fail } from '../../fhir/index.ts'
import type { Failure } from '../failure.ts'
import type { FhirRequest } from '../request.ts'

/** An entry as a request of its own: it is decided by itself, whatever was decided about the Bundle. */
export function toEntryRequest(bundle: FhirRequest, entry: Entry): FhirRequest<EntryInteraction> | Failure {
  const { interaction, body, preconditions } = entry
  if (interaction.kind === 'misunderstood') return fail({ ...interaction, problem: 'misunderstood' })
  const decision = bundle.authenticated.decide(interaction)
  if (!decision.allowed) return fail({ problem: 'refused', refused: decision })
  if (isAboutAudit(interaction)) return auditRefusal(interaction)
  return { ...bundle, interaction, body, preconditions, access: decision.access, isEntry: true }
}
