import {
  fail,
  findReferredPatients,
  isRecord,
  isResourceType,
  type Params,
  parseParams,
  parseReference,
  parseSearch,
  type Resource,
} from '../../fhir/index.ts'
import {
  type Access,
  type AccessFilter,
  type Constraint,
  fullAccess,
  hasCompartment,
  namesPatients,
  satisfies,
} from '../../smart/index.ts'
import type { Context } from '../context.ts'
import type { FhirRequest } from '../request.ts'
import { type Failure, isFailure } from '../response.ts'
import { createAccessCheck, seesAll } from './access-check.ts'

/** So many ids fit into the URL of one search. */
const IDS_AT_ONCE = 50

interface NewReferences {
  readonly filter: AccessFilter
  readonly resource: Resource
  /** The stored version that an update replaces: its references were checked or are not the caller's. */
  readonly before: Resource | undefined
  /** `Type/id` of resources that are known to be within the grant. Those found are added. */
  readonly known: Set<string>
}

/**
 * Where the server checks references: fails if new content names a resource outside the patients of the grant. An absent
 * one is refused in the same way, so that the response does not reveal which of them exist (WRITE-11). A Patient is
 * checked by its id (WRITE-2).
 */
export async function checkReferences(
  context: Context,
  request: FhirRequest,
  { filter, resource, before, known }: NewReferences,
): Promise<Failure | undefined> {
  const patients = listPatientConstraints(filter, resource, context.baseUrl)
  if (!patients || !(await context.session.checksReferences?.())) return undefined
  const stored = new Set(before ? listReferences(before, context.baseUrl) : [])
  const named = listReferences(resource, context.baseUrl).filter(it => !stored.has(it) && !known.has(it))
  for (const [type, references] of Map.groupBy(new Set(named), getType)) {
    if (type === 'Patient' || !(hasCompartment(type) || namesPatients(type))) continue
    for (let at = 0; at < references.length; at += IDS_AT_ONCE) {
      const some = references.slice(at, at + IDS_AT_ONCE)
      const found = await findWithin(context, request, type, some, { filterFor: () => patients })
      if (isFailure(found)) return found
      if (!some.every(it => found.has(it))) return fail({ problem: 'outside-access' })
      for (const it of some) known.add(it)
    }
  }
  return undefined
}

/** The patients of a filter as constraints; undefined if it allows the content whatever its patients are. */
function listPatientConstraints(
  filter: AccessFilter,
  resource: Resource,
  baseUrl: string,
): readonly Constraint[] | undefined {
  if (filter === 'everything') return undefined
  const isOpen = ({ panel, patient, refersTo }: Constraint) => !panel && (patient ?? refersTo) === undefined
  if (filter.some(it => isOpen(it) && satisfies(resource, [it], baseUrl))) return undefined
  return filter
    .filter(it => !isOpen(it))
    .map(({ panel, patient, refersTo }) => (panel ? { panel } : { patient: patient ?? refersTo ?? '' }))
}

/** The resources among these (`Type/id`) that exist within an access. */
async function findWithin(
  { session, baseUrl, excludedTypes }: Context,
  request: FhirRequest,
  type: string,
  references: readonly string[],
  access: Access,
): Promise<ReadonlySet<string> | Failure> {
  const ids = references.map(it => it.slice(type.length + 1)).join(',')
  const interaction = { kind: 'search-type', type, params: [['_id', ids]] } as const
  const limit = { matches: references.length, characters: Number.POSITIVE_INFINITY }
  const found = await session.collect({ ...request, access: fullAccess, interaction }, limit)
  if (isFailure(found)) return found
  const resources = found === 'too-many' ? [] : found.map(it => it.parse())
  const check = await createAccessCheck({
    ...{ access, baseUrl, excludedTypes, resources },
    panelMembers: (panels, patients) => session.panelMembers(panels, patients),
  })
  if (isFailure(check)) return check
  const isWithin = (it: Resource) => check.allows('r', it) || isSharedDevice(it, baseUrl)
  return new Set(resources.filter(isWithin).map(it => `${type}/${it.id}`))
}

/** A Device may belong to no patient. */
function isSharedDevice(resource: Resource, baseUrl: string): boolean {
  return resource.resourceType === 'Device' && findReferredPatients(resource, baseUrl).size === 0
}

/** The resources of this server that content refers to, as `Type/id`. */
export function listReferences(content: unknown, baseUrl: string): readonly string[] {
  return listReferenceTexts(content).flatMap(text => {
    const reference = parseReference(text, baseUrl)
    return reference ? [`${reference.type}/${reference.id}`] : []
  })
}

/** All references in content, in any form. */
export function listReferenceTexts(content: unknown): readonly string[] {
  if (Array.isArray(content)) return content.flatMap(listReferenceTexts)
  if (!isRecord(content)) return []
  return Object.entries(content).flatMap(([name, value]) =>
    name === 'reference' && typeof value === 'string' ? [value] : listReferenceTexts(value),
  )
}

function getType(reference: string): string {
  return reference.slice(0, reference.indexOf('/'))
}

const CONDITIONAL = /^([A-Z][A-Za-z]+)\?(.+)$/

export interface ConditionalReference {
  readonly type: string
  readonly params: Params
}

/** `Practitioner?identifier=…` (R4 http.html#trules); undefined for any other reference, and for an invalid one. */
export function parseConditionalReference(reference: string): ConditionalReference | undefined {
  const [, type = '', query = ''] = CONDITIONAL.exec(reference) ?? []
  const params = isResourceType(type) ? parseParams(query) : undefined
  return params && { type, params }
}

/** Whether parameters depend on the type alone. A chain depends on other resources, and so may a parameter that R4 does not define. */
export function dependsOnTypeAlone(type: string, params: Params, baseUrl: string): boolean {
  return params.every(
    ([name, value]) => !['error', 'chain', 'has'].includes(parseSearch(type, name, value, baseUrl).kind),
  )
}

/** Whether an upstream server may resolve a conditional reference: the caller may search all that it depends on. */
export function isUnrestricted(
  { type, params }: ConditionalReference,
  access: Access,
  baseUrl: string,
): boolean {
  return access.filterFor(type, 's') === 'everything' && dependsOnTypeAlone(type, params, baseUrl)
}

/**
 * Whether new content makes the server search where the caller may not: the result would reveal stored data. Servers also
 * resolve references with a base URL, or with a slash before the question mark (`Patient/?name=…`), so that every
 * reference with a question mark counts as conditional.
 */
export function hidesSearch(content: unknown, access: Access, baseUrl: string): boolean {
  return !seesAll(access) && hides(content)

  function hides(value: unknown): boolean {
    if (Array.isArray(value)) return value.some(hides)
    if (!isRecord(value)) return false
    return Object.entries(value).some(([name, item]) =>
      name === 'reference' && typeof item === 'string' ? isHidden(item) : hides(item),
    )
  }

  function isHidden(reference: string): boolean {
    if (!reference.includes('?')) return false
    const conditional = parseConditionalReference(reference)
    return !conditional || !isUnrestricted(conditional, access, baseUrl)
  }
}
