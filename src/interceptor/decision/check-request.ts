import type { Interaction } from '../../fhir/index.ts'
import { computeAccess, type EnforcementPolicy, type Grant, type GrantedAccess } from '../../smart/index.ts'
import { readEntries } from './bundle.ts'
import { checkContent } from './check-content.ts'
import { deny } from './check-type.ts'
import { decide } from './decide.ts'
import type { Decision } from './decision.ts'

/**
 * Decides on a request with its body: the content of a write, and every entry of a Bundle. The first refused entry
 * refuses the Bundle. Without a body it checks the interaction only.
 */
export function checkRequest(
  interaction: Interaction,
  body: unknown,
  grant: Grant,
  policy: EnforcementPolicy,
  access: GrantedAccess = computeAccess(grant, policy),
): Decision {
  const decision = decide(interaction, grant, policy, access)
  if (!decision.allowed || body === undefined) return decision
  if (interaction.kind === 'bundle') return checkBundle(decision, body, grant, policy, access)
  const refusal = checkContent(interaction, body, decision.access, policy.fhirBaseUrl)
  return refusal ? deny(refusal) : decision
}

function checkBundle(
  bundle: Decision,
  body: unknown,
  grant: Grant,
  policy: EnforcementPolicy,
  access: GrantedAccess,
): Decision {
  const entries = readEntries(body, policy.fhirBaseUrl, grant, access)
  if ('kind' in entries) return deny(entries)
  const decisions = entries.map(entry =>
    entry.interaction.kind === 'misunderstood'
      ? deny(entry.interaction)
      : checkRequest(entry.interaction, entry.body, grant, policy, access),
  )
  const refused = decisions.find(decision => !decision.allowed)
  if (refused || !bundle.allowed) return refused ?? bundle
  const limited = decisions.find(decision => decision.allowed && decision.within !== 'everything')
  return limited?.allowed ? { ...bundle, within: limited.within } : bundle
}
