import { type Interaction, isProblem, type Misunderstood, parseEntries } from '../../fhir/index.ts'
import type { Access, Grant } from '../../smart/index.ts'
import { isJsonObject, type JsonObject } from './json.ts'

/** One request inside a batch or transaction. */
export interface Entry {
  readonly interaction: Interaction | Misunderstood
  readonly body: unknown
}

/**
 * The requests of a Bundle, read by the parser that the server uses, references of a transaction resolved before they
 * are judged; or why it is none.
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
  const addresses = new Map(entries.flatMap(({ fullUrl, interaction }) => addressOf(fullUrl, interaction)))
  const address = (text: string) => addresses.get(text) ?? matched(text, grant, access)
  return entries.map(({ interaction, body }) => ({ interaction, body: resolve(body, address) }))
}

// A resource that an entry creates has no id yet. Its URL stays, and counts as another patient where it may be one.
function addressOf(
  fullUrl: unknown,
  interaction: Interaction | Misunderstood,
): readonly (readonly [string, string])[] {
  if (typeof fullUrl !== 'string') return []
  if (interaction.kind === 'create' && interaction.type === 'Patient') return [[fullUrl, NEW_PATIENT]]
  if (interaction.kind !== 'update') return []
  return [[fullUrl, `${interaction.type}/${interaction.id}`]]
}

const NEW_PATIENT = 'http://new.invalid/Patient/new'

/** `Patient?identifier=…`: a search, which under a limited grant can find no patient but that of the token. */
function matched(text: string, { patient }: Grant, access: Access): string | undefined {
  if (!text.startsWith('Patient?') || patient === undefined) return undefined
  const filter = access.filterFor('Patient', 's')
  const own = filter !== 'everything' && filter.length > 0 && filter.every(limit => limit.patient === patient)
  return own ? `Patient/${patient}` : undefined
}

function resolve(value: unknown, address: (text: string) => string | undefined): unknown {
  if (Array.isArray(value)) return value.map(item => resolve(item, address))
  if (!isJsonObject(value)) return value
  const resolved: [string, unknown][] = Object.entries(value).map(([name, item]) => [
    name,
    name === 'reference' && typeof item === 'string' ? (address(item) ?? item) : resolve(item, address),
  ])
  return Object.fromEntries(resolved) satisfies JsonObject
}
