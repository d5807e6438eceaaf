import { isFailure, isRecord } from '../../core/index.ts'
import {
  failFor,
  findSearchParameter,
  type Interaction,
  listAlternatives,
  listCompartmentParameters,
  type Params,
  parseReference,
  parseSearch,
  resourceTypes,
  type SearchClause,
  SearchSteps,
  Work,
} from '../../fhir/index.ts'
import type { Access, AccessFilter, Constraint } from '../../smart/index.ts'
import { isChained } from '../decision/check-type.ts'
import type { Refusal } from '../refuse.ts'

/**
 * Refuses requests that a host without access control cannot limit: it searches all of its data and overwrites whatever
 * is stored. Under a limited grant a search must itself be limited to the grant, and a request that can be checked
 * neither before nor afterwards is refused. See docs/decisions/0031-interceptor-on-other-servers.md.
 */
export function checkHostRules(
  interaction: Interaction,
  access: Access,
  baseUrl: string,
  work: Work = new Work(),
): Refusal | undefined {
  const limit: Limit = { access, baseUrl, work }
  switch (interaction.kind) {
    case 'search-type':
      return checkSearch(interaction.type, interaction.params, limit)
    case 'search-compartment':
      return interaction.type === '*'
        ? checkWholeTypes(access, resourceTypes)
        : checkSearch(interaction.type, interaction.params, limit, true)
    case 'search-system':
    case 'history-system':
      return checkWholeTypes(access, readTypes(interaction.params))
    case 'history-type':
      return checkWholeTypes(access, [interaction.type])
    case 'patch':
      return checkPatchAccess(interaction.type, access)
    case 'patch-conditional':
      return (
        checkPatchAccess(interaction.type, access) ??
        checkCondition(interaction.type, interaction.params, 'u', limit)
      )
    case 'update-conditional':
      return checkCondition(interaction.type, interaction.params, 'u', limit)
    case 'delete-conditional':
      return checkCondition(interaction.type, interaction.params, 'd', limit)
    case 'create':
      return interaction.ifNoneExist && checkCondition(interaction.type, interaction.ifNoneExist, 'c', limit)
    case 'operation':
      return checkOperation(interaction, limit)
    default:
      return undefined
  }
}

/** What a request must be limited to. */
interface Limit {
  readonly access: Access
  readonly baseUrl: string
  readonly work: Work
}

function checkOperation(
  { name, type = '', id, params }: Extract<Interaction, { readonly kind: 'operation' }>,
  limit: Limit,
): Refusal | undefined {
  if (name === '$lastn') return checkSearch('Observation', params, limit)
  // The outcome tells about the stored resource with the id, and does not name its patient.
  return name === '$validate' && id !== undefined && !isEverything(limit.access.filterFor(type, 'r'))
    ? failFor('validated-not-checked')
    : undefined
}

export function isEverything(filter: AccessFilter): boolean {
  return filter === 'everything'
}

/** Only the host knows the result of a patch, and a patch can reveal stored data or make it readable. */
function checkPatchAccess(type: string, access: Access): Refusal | undefined {
  return isEverything(access.filterFor(type, 'u')) && isEverything(access.filterFor(type, 'r'))
    ? undefined
    : failFor('patch-not-checked')
}

function checkCondition(type: string, params: Params, permission: 'c' | 'u' | 'd', limit: Limit) {
  const { access } = limit
  if (!isEverything(access.filterFor(type, permission)) || !isEverything(access.filterFor(type, 's')))
    return failFor('condition-not-limited')
  return checkChainAccess(type, params, limit)
}

function checkWholeTypes(access: Access, types: readonly string[]): Refusal | undefined {
  return types.every(type => isEverything(access.filterFor(type, 's'))) ? undefined : failFor('search-of-all')
}

function checkSearch(type: string, params: Params, limit: Limit, inCompartment = false): Refusal | undefined {
  const { access, baseUrl } = limit
  const filter = access.filterFor(type, 's')
  if (
    filter !== 'everything' &&
    !filter.some(constraint => isNarrowedTo(type, params, constraint, baseUrl, inCompartment))
  )
    return failFor('search-not-limited')
  return checkReverseIncludes(params, access, isEverything(filter)) ?? checkChainAccess(type, params, limit)
}

/** Whether the search itself is limited to what the constraint allows. */
function isNarrowedTo(
  type: string,
  params: Params,
  { id, panel, patient, query = [] }: Constraint,
  baseUrl: string,
  inCompartment: boolean,
): boolean {
  if (id !== undefined || panel !== undefined) return false
  const isSent = (pair: Params[number]) =>
    params.some(it => isWithin(it, pair)) &&
    hasOnly(params, pair[0], it => query.some(other => isWithin(it, other)))
  if (!query.every(isSent)) return false
  if (patient === undefined) return true
  if (type === 'Patient')
    return inCompartment || hasOnly(params, '_id', ([name, value]) => name === '_id' && value === patient)
  const naming = params.filter(([name]) => isCompartmentParameter(type, removeBrackets(name)))
  const isOwn = ([name, value]: Params[number]) => isPatient(name, value, patient, baseUrl)
  return (
    (inCompartment || naming.some(isOwn)) &&
    naming.every(pair => isOwn(pair) || namesNoPatient(pair[1], baseUrl))
  )
}

/** Whether the search has a parameter, with accepted values only: of several values, a host may use any. */
function hasOnly(params: Params, name: string, isAccepted: (pair: Params[number]) => boolean): boolean {
  const same = params.filter(([other]) => removeBrackets(other) === name)
  return same.length > 0 && same.every(isAccepted)
}

/** Whether a parameter of the search asks for nothing but values of a filter: scopes with `category=a` and `category=b` are one. */
function isWithin([name, value]: Params[number], [filtered, values]: Params[number]): boolean {
  const allowed = listAlternatives(filtered, values)
  return name === filtered && listAlternatives(name, value).every(it => allowed.includes(it))
}

/** Many hosts read `patient[]=1` and `patient[0]=1` as `patient`. */
function removeBrackets(name: string): string {
  return name.replace(/\[.*$/, '')
}

/** A bare id may be that of a patient. */
function namesNoPatient(value: string, baseUrl: string): boolean {
  return value.split(',').every(one => (parseReference(one, baseUrl)?.type ?? 'Patient') !== 'Patient')
}

/**
 * The host adds resources of every patient that refer to a shared resource. A refusal of the response would reveal them, so
 * the grant must cover their type completely.
 */
function checkReverseIncludes(params: Params, access: Access, isShared: boolean): Refusal | undefined {
  const sources = params
    .filter(([name]) => name.startsWith('_revinclude') && (isShared || name !== '_revinclude'))
    .map(([, value]) => value.split(':')[0] ?? '')
  return sources.every(it =>
    (it === '*' ? resourceTypes : [it]).every(type => isEverything(access.filterFor(type, 's'))),
  )
    ? undefined
    : failFor('reverse-include-not-limited')
}

function isCompartmentParameter(type: string, name: string): boolean {
  const code = name.endsWith(':Patient') ? name.slice(0, -':Patient'.length) : name
  const members = listCompartmentParameters(type)
  if (members.includes(code)) return true
  const parameter = findSearchParameter(type, code)
  // `patient` and `subject` often search the same element, but the CompartmentDefinition has only one of them.
  const other = findSearchParameter(type, code === 'patient' ? 'subject' : 'patient')
  if (!parameter || !other || !members.includes(other.code)) return false
  return (
    parameter.expression.startsWith(other.expression) || other.expression.startsWith(parameter.expression)
  )
}

// A bare id names a patient only if the parameter allows no other type.
function isPatient(name: string, value: string, patient: string, baseUrl: string): boolean {
  if (value === patient) return name === 'patient' || name.endsWith(':Patient')
  const reference = parseReference(value, baseUrl)
  return reference?.type === 'Patient' && reference.id === patient && reference.version === undefined
}

/** The host follows a chain through all of its data, so the grant must cover every type of the chain completely. */
function checkChainAccess(
  type: string,
  params: Params,
  { access, baseUrl, work }: Limit,
): Refusal | undefined {
  const steps = new SearchSteps(work)
  const isWithinGrant = ([name, value]: Params[number]) => {
    if (!isChained(name)) return true
    const clause = parseSearch(type, name, value, baseUrl, steps)
    return (
      !isFailure(clause) &&
      findLinkedTypes(clause).every(linked => isEverything(access.filterFor(linked, 's')))
    )
  }
  return params.every(isWithinGrant) ? undefined : failFor('chain-not-limited')
}

function findLinkedTypes(clause: SearchClause): readonly string[] {
  if (clause.kind === 'has') return [clause.type, ...findLinkedTypes(clause.clause)]
  if (clause.kind !== 'chain') return []
  return clause.targets.flatMap(target => [target.type, ...findLinkedTypes(target.clause)])
}

function readTypes(params: Params): readonly string[] {
  const named = params.filter(([name]) => name === '_type').flatMap(([, value]) => value.split(','))
  return named.length > 0 ? named : resourceTypes
}

const CONDITIONAL = /^([A-Za-z]+)\?/

/** The types that the conditional references of a body search (`Patient?identifier=…`, R4 http.html#trules). */
export function findConditionalTypes(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(findConditionalTypes)
  if (!isRecord(value)) return []
  return Object.entries(value).flatMap(([name, item]) => {
    if (name !== 'reference' || typeof item !== 'string') return findConditionalTypes(item)
    return CONDITIONAL.exec(item)?.[1] ?? []
  })
}
