import { type Interaction, type Misunderstood, parseEntry } from '../../fhir/index.ts'
import { isJsonObject, type JsonObject } from './json.ts'

/** One request inside a batch or transaction. */
export interface Entry {
  readonly interaction: Interaction | Misunderstood
  readonly body: unknown
}

/** The requests of a Bundle, references between them resolved before they are judged; or why it is none. */
export function readEntries(bundle: unknown, baseUrl: string): readonly Entry[] | Misunderstood {
  if (!isJsonObject(bundle) || bundle.resourceType !== 'Bundle')
    return misread('Cannot read body: it is no Bundle')
  if (bundle.type !== 'batch' && bundle.type !== 'transaction')
    return misread('Cannot run this Bundle: its type is neither batch nor transaction')
  const entries: unknown = bundle.entry ?? []
  if (!Array.isArray(entries) || !entries.every(isJsonObject))
    return misread('Cannot read the entries of the Bundle')
  const read = entries.map(entry => ({ entry, interaction: interactionOf(entry.request, baseUrl) }))
  const addresses = new Map(read.flatMap(({ entry, interaction }) => addressOf(entry.fullUrl, interaction)))
  return read.map(({ entry, interaction }) => ({ interaction, body: resolve(entry.resource, addresses) }))
}

function interactionOf(request: unknown, baseUrl: string): Interaction | Misunderstood {
  if (!isJsonObject(request)) return misread('Cannot read entry: it has no request')
  const { method, url, ifNoneExist } = request
  if (typeof method !== 'string' || typeof url !== 'string')
    return misread('Cannot read entry: it has no request')
  if (ifNoneExist !== undefined && typeof ifNoneExist !== 'string') return misread('Cannot read ifNoneExist')
  return parseEntry({ method, url, ifNoneExist }, baseUrl)
}

// What an entry makes anew will have an id of its own: an address that no resource of this server can have.
function addressOf(
  fullUrl: unknown,
  interaction: Interaction | Misunderstood,
): readonly (readonly [string, string])[] {
  if (typeof fullUrl !== 'string' || !fullUrl.startsWith('urn:')) return []
  if (interaction.kind === 'update') return [[fullUrl, `${interaction.type}/${interaction.id}`]]
  return interaction.kind === 'create' ? [[fullUrl, `http://new.invalid/${interaction.type}/new`]] : []
}

function resolve(value: unknown, addresses: ReadonlyMap<string, string>): unknown {
  if (addresses.size === 0) return value
  if (Array.isArray(value)) return value.map(item => resolve(item, addresses))
  if (!isJsonObject(value)) return value
  const resolved: [string, unknown][] = Object.entries(value).map(([name, item]) => [
    name,
    name === 'reference' && typeof item === 'string'
      ? (addresses.get(item) ?? item)
      : resolve(item, addresses),
  ])
  return Object.fromEntries(resolved) satisfies JsonObject
}

function misread(text: string): Misunderstood {
  return { kind: 'misunderstood', status: 400, text }
}
