import { type Interaction, isProblem, isRecord, type Misunderstood, parseEntries } from '../../fhir/index.ts'
import {
  type Access,
  computeAccess,
  type EnforcementPolicy,
  type Grant,
  type GrantedAccess,
} from '../../smart/index.ts'
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

/** One request inside a batch or transaction. */
export interface Entry {
  readonly interaction: Interaction | Misunderstood
  readonly body: unknown
}

/**
 * Reads the requests of a Bundle with the parser that the server uses. References of a transaction are resolved first,
 * because the resolved references are what is written.
 */
export function readEntries(
  bundle: unknown,
  baseUrl: string,
  grant: Grant,
  access: Access,
): readonly Entry[] | Misunderstood {
  const parsed = parseEntries(bundle, baseUrl)
  if (isProblem(parsed)) return { kind: 'misunderstood', status: 400, text: parsed.text }
  const { type, entries } = parsed
  if (type === 'batch') return entries
  const references = new Map<unknown, string>(
    entries.flatMap(({ fullUrl, interaction }) => listFullUrl(fullUrl, interaction)),
  )
  const resolveReference = (text: string) => references.get(text) ?? resolveConditional(text, grant, access)
  return entries.map(({ interaction, body }) => ({
    interaction,
    body: resolveReferences(body, resolveReference),
  }))
}

// A resource that an entry creates has no id yet. Its URL stays as it is, and a new Patient counts as another patient.
function listFullUrl(
  fullUrl: unknown,
  interaction: Interaction | Misunderstood,
): readonly (readonly [unknown, string])[] {
  if (interaction.kind === 'create' && interaction.type === 'Patient') return [[fullUrl, NEW_PATIENT]]
  if (interaction.kind !== 'update') return []
  return [[fullUrl, `${interaction.type}/${interaction.id}`]]
}

const NEW_PATIENT = 'http://new.invalid/Patient/new'

/** `Patient?identifier=…` is a search, which under a limited grant can only find the patient of the token. */
function resolveConditional(text: string, { patient }: Grant, access: Access): string | undefined {
  if (!text.startsWith('Patient?') || patient === undefined) return undefined
  const filter = access.filterFor('Patient', 's')
  const own = filter !== 'everything' && filter.length > 0 && filter.every(limit => limit.patient === patient)
  return own ? `Patient/${patient}` : undefined
}

function resolveReferences(value: unknown, resolveReference: (text: string) => string | undefined): unknown {
  if (Array.isArray(value)) return value.map(item => resolveReferences(item, resolveReference))
  if (!isRecord(value)) return value
  const resolved: [string, unknown][] = Object.entries(value).map(([name, item]) => [
    name,
    name === 'reference' && typeof item === 'string'
      ? (resolveReference(item) ?? item)
      : resolveReferences(item, resolveReference),
  ])
  return Object.fromEntries(resolved)
}
