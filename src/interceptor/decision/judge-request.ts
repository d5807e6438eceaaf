import type { Interaction } from '../../fhir/index.ts'
import { computeAccess, type EnforcementPolicy, type Grant, type GrantedAccess } from '../../smart/index.ts'
import { readEntries } from './bundle.ts'
import { contentRefusal } from './content.ts'
import { decide } from './decide.ts'
import type { Decision } from './decision.ts'
import { refusedFor } from './judge.ts'

/**
 * The decision on a request with its body: what it writes, and every entry of a Bundle. Of a Bundle the first entry
 * that is refused decides. Without a body only the interaction itself is judged.
 */
export function judgeRequest(
  interaction: Interaction,
  body: unknown,
  grant: Grant,
  policy: EnforcementPolicy,
  access: GrantedAccess = computeAccess(grant, policy),
): Decision {
  const decision = decide(interaction, grant, policy, access)
  if (!decision.allowed || body === undefined) return decision
  if (interaction.kind === 'bundle') return judgeBundle(decision, body, grant, policy, access)
  const refusal = contentRefusal(interaction, body, decision.access, policy.fhirBaseUrl)
  return refusal ? refusedFor(refusal) : decision
}

function judgeBundle(
  bundle: Decision,
  body: unknown,
  grant: Grant,
  policy: EnforcementPolicy,
  access: GrantedAccess,
): Decision {
  const entries = readEntries(body, policy.fhirBaseUrl, grant, access)
  if ('kind' in entries) return refusedFor(entries)
  const decisions = entries.map(entry =>
    entry.interaction.kind === 'misunderstood'
      ? refusedFor(entry.interaction)
      : judgeRequest(entry.interaction, entry.body, grant, policy, access),
  )
  const refused = decisions.find(decision => !decision.allowed)
  if (refused || !bundle.allowed) return refused ?? bundle
  const limited = decisions.find(decision => decision.allowed && decision.within !== 'everything')
  return limited?.allowed ? { ...bundle, within: limited.within } : bundle
}
