import {
  compartmentParameters,
  type Interaction,
  type Params,
  parseReference,
  parseSearch,
  resourceTypes,
  type SearchClause,
  searchParameter,
} from '../../fhir/index.ts'
import type { Access, AccessFilter, Constraint } from '../../smart/index.ts'
import { isChained } from '../decision/chains.ts'
import type { Refusal } from '../refusal.ts'

/**
 * What a host that knows nothing of grants cannot be trusted with: it answers a search from all of its data, and
 * writes over whatever is stored. Under a limited grant a search must narrow itself to the grant, and what can be
 * judged neither before nor after is refused. See docs/decisions/0031-interceptor-on-other-servers.md.
 */
export function hostRefusal(interaction: Interaction, access: Access, baseUrl: string): Refusal | undefined {
  switch (interaction.kind) {
    case 'search-type':
      return searchRefusal(interaction.type, interaction.params, access, baseUrl, false)
    case 'search-compartment':
      return interaction.type === '*'
        ? wholeRefusal(access, resourceTypes)
        : searchRefusal(interaction.type, interaction.params, access, baseUrl, true)
    case 'search-system':
    case 'history-system':
      return wholeRefusal(access, typesOf(interaction.params))
    case 'history-type':
      return wholeRefusal(access, [interaction.type])
    case 'patch':
      return patchRefusal(interaction.type, access)
    case 'patch-conditional':
      return (
        patchRefusal(interaction.type, access) ??
        conditionalRefusal(interaction.type, interaction.params, access, 'u', baseUrl)
      )
    case 'update-conditional':
      return conditionalRefusal(interaction.type, interaction.params, access, 'u', baseUrl)
    case 'delete-conditional':
      return conditionalRefusal(interaction.type, interaction.params, access, 'd', baseUrl)
    case 'create':
      return (
        interaction.ifNoneExist &&
        conditionalRefusal(interaction.type, interaction.ifNoneExist, access, 'c', baseUrl)
      )
    case 'operation':
      // The host looks for the newest among all of its data.
      return interaction.name === '$lastn'
        ? searchRefusal('Observation', interaction.params, access, baseUrl, false)
        : undefined
    default:
      return undefined
  }
}

export function isWhole(filter: AccessFilter): boolean {
  return filter === 'everything'
}

/** A patch is judged on its result, which only the host knows; and by it one may read, or make readable, what is stored. */
function patchRefusal(type: string, access: Access): Refusal | undefined {
  return isWhole(access.filterFor(type, 'u')) && isWhole(access.filterFor(type, 'r'))
    ? undefined
    : refused('a patch is judged on its result')
}

function conditionalRefusal(
  type: string,
  params: Params,
  access: Access,
  permission: 'c' | 'u' | 'd',
  baseUrl: string,
) {
  if (!isWhole(access.filterFor(type, permission)) || !isWhole(access.filterFor(type, 's')))
    return refused('what a condition matches may be outside the grant')
  return chainRefusal(type, params, access, baseUrl)
}

function wholeRefusal(access: Access, types: readonly string[]): Refusal | undefined {
  return types.every(type => isWhole(access.filterFor(type, 's')))
    ? undefined
    : refused('an answer from all data cannot be narrowed')
}

function searchRefusal(
  type: string,
  params: Params,
  access: Access,
  baseUrl: string,
  inCompartment: boolean,
): Refusal | undefined {
  const filter = access.filterFor(type, 's')
  if (filter === 'everything' || filter.some(limit => narrows(type, params, limit, baseUrl, inCompartment)))
    return chainRefusal(type, params, access, baseUrl)
  return refused('the search must name the patient of the token, and every filter of the scope')
}

/** Whether the search itself asks for no more than the limit. */
function narrows(
  type: string,
  params: Params,
  limit: Constraint,
  baseUrl: string,
  inCompartment: boolean,
): boolean {
  const asked = (name: string, value: string) => params.some(([n, v]) => n === name && v === value)
  const filters = (limit.query ?? []).every(([name, value]) => asked(name, value))
  if (!filters || limit.id !== undefined || limit.panel !== undefined) return false
  const { patient } = limit
  if (patient === undefined || inCompartment) return true
  if (type === 'Patient') return asked('_id', patient)
  return params.some(([name, value]) => isMembership(type, name) && isPatient(name, value, patient, baseUrl))
}

function isMembership(type: string, name: string): boolean {
  const code = name.endsWith(':Patient') ? name.slice(0, -':Patient'.length) : name
  const members = compartmentParameters(type)
  if (members.includes(code)) return true
  const parameter = searchParameter(type, code)
  // `patient` is often said of the same element as `subject`, of which only one is in the CompartmentDefinition.
  const other = searchParameter(type, code === 'patient' ? 'subject' : 'patient')
  if (!parameter || !other || !members.includes(other.code)) return false
  return (
    parameter.expression.startsWith(other.expression) || other.expression.startsWith(parameter.expression)
  )
}

// A bare id names a patient only where nothing else can be meant.
function isPatient(name: string, value: string, patient: string, baseUrl: string): boolean {
  if (value === patient) return name === 'patient' || name.endsWith(':Patient')
  const reference = parseReference(value, baseUrl)
  return reference?.type === 'Patient' && reference.id === patient && reference.version === undefined
}

/** The host looks along a chain into all of its data, so every type on it must be reached as a whole. */
function chainRefusal(type: string, params: Params, access: Access, baseUrl: string): Refusal | undefined {
  const isKept = ([name, value]: Params[number]) => {
    if (!isChained(name)) return true
    const clause = parseSearch(type, name, value, baseUrl)
    return (
      clause.kind !== 'error' && linkedTypes(clause).every(linked => isWhole(access.filterFor(linked, 's')))
    )
  }
  return params.every(isKept) ? undefined : refused('a chain looks into data outside the grant')
}

function linkedTypes(clause: SearchClause): readonly string[] {
  if (clause.kind === 'has') return [clause.type, ...linkedTypes(clause.clause)]
  if (clause.kind !== 'chain') return []
  return clause.targets.flatMap(target => [target.type, ...linkedTypes(target.clause)])
}

function typesOf(params: Params): readonly string[] {
  const named = params.filter(([name]) => name === '_type').flatMap(([, value]) => value.split(','))
  return named.length > 0 ? named : resourceTypes
}

export function refused(why: string): Refusal {
  return { kind: 'not-within', hint: `This server cannot keep the request within the grant: ${why}` }
}
