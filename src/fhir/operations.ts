import { isRecord } from '../core/index.ts'
import { findSearchParameter, isResourceType } from './definitions.ts'
import type { Interaction, Params } from './interaction.ts'
import { LAST_N_SHOWN } from './limits.ts'
import { failFor } from './reasons/reasons.ts'
import type { Resource } from './resource.ts'
import type { BadSearch } from './search/bad-search.ts'
import { indexParameter } from './search/index-entries.ts'

type Operation = Extract<Interaction, { readonly kind: 'operation' }>

/** A permission of SMART's scopes: create, read, update, delete, search. */
export type Permission = 'c' | 'r' | 'u' | 'd' | 's'

type Level = 'system' | 'type' | 'instance'

/** A supported operation: where it can be called, and the permissions it needs. */
export interface OperationRule {
  /** With its `$`. */
  readonly name: string
  readonly levels: readonly Level[]
  readonly types: readonly string[] | 'any'
  readonly needs: OperationNeeds
}

type OperationNeeds =
  /** All, or any, of these permissions on the type. The response is also checked against the grant. */
  | { readonly kind: 'all' | 'any'; readonly permissions: readonly [Permission, ...Permission[]] }
  /** Permission to read or search the whole type: the response is not checked. */
  | { readonly kind: 'whole-type' }
  /** Permission to read all data and, for a POST of an operation that does not only read, to write all data. */
  | { readonly kind: 'all-data'; readonly readsOnly: boolean }
  /** Scopes of a backend service. What it exports is checked against the grant. */
  | { readonly kind: 'export' }

const RECORD: OperationNeeds = { kind: 'all', permissions: ['r', 's'] }
const TERMINOLOGY: OperationNeeds = { kind: 'whole-type' }

/** The operations of the embedded server; a server that uses the library may offer them too. */
export const operations: readonly OperationRule[] = [
  { name: '$everything', levels: ['instance'], types: ['Patient', 'Encounter'], needs: RECORD },
  { name: '$lastn', levels: ['type'], types: ['Observation'], needs: RECORD },
  // Uses no stored resource: any permission on the type is enough.
  {
    name: '$validate',
    levels: ['type'],
    types: 'any',
    needs: { kind: 'any', permissions: ['c', 'r', 'u', 'd', 's'] },
  },
  { name: '$validate', levels: ['instance'], types: 'any', needs: { kind: 'all', permissions: ['r'] } },
]

const EXPORT: OperationNeeds = { kind: 'export' }

/** A bulk export, its status and its files. Not among `operations`: a host of the library would have to check its files. */
export const exportOperations: readonly OperationRule[] = [
  { name: '$export', levels: ['system'], types: 'any', needs: EXPORT },
  { name: '$export', levels: ['type'], types: ['Patient'], needs: EXPORT },
  { name: '$export', levels: ['instance'], types: ['Group'], needs: EXPORT },
  { name: '$export-status', levels: ['system'], types: 'any', needs: EXPORT },
  { name: '$export-file', levels: ['system'], types: 'any', needs: EXPORT },
]

/** Operations of the upstream: every resource in the response is checked, or the response cannot contain patient data. */
const upstreamOperations: readonly OperationRule[] = [
  { name: '$docref', levels: ['type'], types: ['DocumentReference'], needs: RECORD },
  { name: '$summary', levels: ['instance'], types: ['Patient'], needs: RECORD },
  { name: '$document', levels: ['instance'], types: ['Composition'], needs: RECORD },
  { name: '$expand', levels: ['type', 'instance'], types: ['ValueSet'], needs: TERMINOLOGY },
  {
    name: '$validate-code',
    levels: ['type', 'instance'],
    types: ['CodeSystem', 'ValueSet'],
    needs: TERMINOLOGY,
  },
  { name: '$lookup', levels: ['type'], types: ['CodeSystem'], needs: TERMINOLOGY },
  { name: '$translate', levels: ['type', 'instance'], types: ['ConceptMap'], needs: TERMINOLOGY },
]

/** The operations of the gateway, with those that the site passes to the upstream. */
export function listGatewayOperations(passed: readonly OperationRule[] = []): readonly OperationRule[] {
  return [...operations, ...upstreamOperations, ...passed]
}

const PASSED = /^(?:([A-Z][A-Za-z]+)\/)?(\$[a-z][a-z0-9-]*)(:read)?$/

/**
 * An operation that the site passes to the upstream: `$meta` anywhere, `Patient/$match` on the type and its
 * instances; with `:read` the site states that it changes nothing. Undefined if the text is malformed.
 */
export function parsePassedOperation(text: string): OperationRule | undefined {
  const [, type, name, read] = PASSED.exec(text) ?? []
  if (name === undefined || (type !== undefined && !isResourceType(type))) return undefined
  return {
    name,
    levels: type === undefined ? ['system', 'type', 'instance'] : ['type', 'instance'],
    types: type === undefined ? 'any' : [type],
    needs: { kind: 'all-data', readsOnly: read !== undefined },
  }
}

export function findOperation(
  rules: readonly OperationRule[],
  { name, type, id }: Pick<Operation, 'name' | 'type' | 'id'>,
): OperationRule | undefined {
  const level = type === undefined ? 'system' : id === undefined ? 'type' : 'instance'
  return rules.find(
    rule =>
      rule.name === name &&
      rule.levels.includes(level) &&
      (type === undefined || rule.types === 'any' || rule.types.includes(type)),
  )
}

/** The operations that can be called on a type or its instances, by name, without the `$`. */
export function listOperations(rules: readonly OperationRule[], type: string): readonly string[] {
  const offered = rules.filter(
    ({ types, levels }) => (types === 'any' || types.includes(type)) && levels.some(it => it !== 'system'),
  )
  return [...new Set(offered.map(({ name }) => name.slice(1)))]
}

/** The canonical URL of an operation of R4 (CapabilityStatement.rest.resource.operation.definition). */
export function getOperationDefinition(type: string, name: string): string {
  return `http://hl7.org/fhir/OperationDefinition/${name === 'validate' ? 'Resource' : type}-${name}`
}

/** The text of the response to an unsupported operation. */
/** The parameters of `Observation/$lastn`. */
interface LastN {
  /** How many Observations of each code. */
  readonly max: number
  /** The search parameters that choose the Observations. */
  readonly criteria: Params
}

const FORMATS: ReadonlySet<string> = new Set(['_format', '_pretty'])
const RESULT = /^_(?:sort|count|summary|elements|total|contained|(?:rev)?include)(?::|$)/

export function parseLastN(params: Params): LastN | BadSearch {
  const given = params.filter(([name]) => name === 'max').map(([, value]) => value)
  const [max = '1', another] = given
  if (another !== undefined || !/^\d{1,4}$/.test(max) || Number(max) < 1 || Number(max) > LAST_N_SHOWN)
    return failFor('last-count-malformed', { most: LAST_N_SHOWN })
  const unknown = params.find(([name]) => RESULT.test(name))
  if (unknown) return failFor('operation-parameter-unknown', { parameter: unknown[0], operation: '$lastn' })
  const criteria = params.filter(([name]) => name !== 'max' && !FORMATS.has(name))
  return { max: Number(max), criteria }
}

/**
 * The most recent Observations of each code, newest first (R4 observation-operation-lastn.html). Observations that
 * share a coding have the same code; those without a coding are compared by their text.
 */
export function selectLastN<T>(
  observations: readonly T[],
  resourceOf: (observation: T) => Resource,
  max: number,
  baseUrl: string,
): readonly T[] {
  const dated = observations.map(it => ({ it, at: findTime(resourceOf(it), baseUrl) }))
  dated.sort((a, b) => b.at - a.at)
  const groups = new Map<string, { readonly members: T[] }>()
  for (const { it } of dated) {
    const keys = listCodeKeys(resourceOf(it))
    const known = keys.map(key => groups.get(key)).find(group => group !== undefined)
    const group = known ?? { members: [] }
    for (const key of keys) if (!groups.has(key)) groups.set(key, group)
    if (group.members.length < max) group.members.push(it)
  }
  return [...new Set(groups.values())].flatMap(group => group.members)
}

function findTime(observation: Resource, baseUrl: string): number {
  const date = findSearchParameter('Observation', 'date')
  const times = date
    ? indexParameter(observation, date, baseUrl).flatMap(entry => (entry.kind === 'date' ? [entry.low] : []))
    : []
  return Math.max(Number.NEGATIVE_INFINITY, ...times)
}

function listCodeKeys({ code }: Resource): readonly string[] {
  if (!isRecord(code)) return ['']
  const codings = Array.isArray(code.coding) ? code.coding.filter(isRecord) : []
  if (codings.length > 0) return codings.map(({ system, code: value }) => JSON.stringify([system, value]))
  return [String(code.text ?? '')]
}
