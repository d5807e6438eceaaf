import { isFailure, isRecord } from '../../core/index.ts'
import {
  failFor,
  findReferredPatients,
  isResource,
  isResourceType,
  type Params,
  parseParams,
  parseReference,
  parseSearch,
  type Resource,
  SearchSteps,
  type Work,
} from '../../fhir/index.ts'
import {
  type Access,
  type AccessFilter,
  type Constraint,
  fullAccess,
  hasCompartment,
  namesPatients,
  satisfies,
  seesAll,
} from '../../smart/index.ts'
import type { Context } from '../context.ts'
import type { FhirRequest } from '../request.ts'
import type { Failure } from '../response.ts'
import { createAccessCheck } from './access-check.ts'

/** So many ids fit into the URL of one search. */
const IDS_AT_ONCE = 50

/** References of one write to resources of patients that are looked up. */
const MAX_REFERENCES = 1_000

interface NewReferences {
  readonly filter: AccessFilter
  readonly resource: Resource
  /** The stored version that an update replaces: its references were checked or are not the caller's. */
  readonly before: Resource | undefined
  /** `Type/id` of resources that are known to be within the grant. Those found are added. */
  readonly known: Set<string>
}

/**
 * Fails if new content of a limited caller names a resource of other patients: it would show up in searches for them, and a
 * server that checks references would reveal whether it exists. An absent one is refused in the same way (WRITE-11). A Patient
 * is checked by its id (WRITE-2).
 */
export async function checkReferences(
  context: Context,
  request: FhirRequest,
  { filter, resource, before, known }: NewReferences,
): Promise<Failure | undefined> {
  const patients = listPatientConstraints(filter, resource, context.baseUrl)
  if (!patients) return undefined
  const elements = findElements(resource, context.baseUrl)
  const stored = new Set(before ? findElements(before, context.baseUrl).keys() : [])
  const named = [...elements.keys()].filter(
    it => mayNamePatients(getType(it)) && !stored.has(it) && !known.has(it),
  )
  if (named.length > MAX_REFERENCES) return TOO_MANY_REFERENCES
  const excess = request.work.count('reference', named.length)
  if (excess) return excess
  for (const [type, references] of Map.groupBy(named, getType)) {
    for (let at = 0; at < references.length; at += IDS_AT_ONCE) {
      const some = references.slice(at, at + IDS_AT_ONCE)
      const found = await findWithin(context, request, type, some, { filterFor: () => patients })
      if (isFailure(found)) return found
      const missing = some.find(it => !found.has(it))
      if (missing !== undefined)
        return failFor('hidden-target', { element: elements.get(missing) ?? missing })
      for (const it of some) known.add(it)
    }
  }
  return undefined
}

const TOO_MANY_REFERENCES = failFor('references-too-many', { most: MAX_REFERENCES })

/** Whether resources of a type may be about patients. A Patient itself is checked by its id. */
function mayNamePatients(type: string): boolean {
  return type !== 'Patient' && (hasCompartment(type) || namesPatients(type))
}

/** The resources of this server that content refers to, as `Type/id`, and the first element that does. */
function findElements(resource: Resource, baseUrl: string): ReadonlyMap<string, string> {
  const elements = new Map<string, string>()
  for (const { text, element } of listReferenceElements(resource)) {
    const reference = parseReference(text, baseUrl)
    const name = reference && `${reference.type}/${reference.id}`
    if (name !== undefined && !elements.has(name)) elements.set(name, element)
  }
  return elements
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
    access,
    baseUrl,
    excludedTypes,
    resources,
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
  return listReferenceElements(content).map(({ text }) => text)
}

/** A reference, and the element that has it: `Observation.performer[0]`. */
export interface ReferenceElement {
  readonly text: string
  readonly element: string
}

/** All references in content with their elements. */
export function listReferenceElements(content: unknown): readonly ReferenceElement[] {
  const found: ReferenceElement[] = []
  const visit = (value: unknown, element: string): void => {
    if (Array.isArray(value)) for (const [at, item] of value.entries()) visit(item, `${element}[${at}]`)
    else if (isRecord(value))
      for (const [name, item] of Object.entries(value)) {
        if (name === 'reference' && typeof item === 'string') found.push({ text: item, element })
        else visit(item, element === '' ? name : `${element}.${name}`)
      }
  }
  visit(content, isResource(content) ? content.resourceType : '')
  return found
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
export function dependsOnTypeAlone(type: string, params: Params, baseUrl: string, work: Work): boolean {
  const steps = new SearchSteps(work)
  return params.every(
    ([name, value]) =>
      !['error', 'chain', 'has'].includes(parseSearch(type, name, value, baseUrl, steps).kind),
  )
}

/** Whether an upstream server may resolve a conditional reference: the caller may search all that it depends on. */
function maySearchAll(
  { type, params }: ConditionalReference,
  access: Access,
  baseUrl: string,
  work: Work,
): boolean {
  return access.filterFor(type, 's') === 'everything' && dependsOnTypeAlone(type, params, baseUrl, work)
}

/**
 * The first element of new content that makes the server search where the caller may not: the result would reveal stored
 * data. Servers also resolve references with a base URL, or with a slash before the question mark (`Patient/?name=…`), so
 * that every reference with a question mark counts as conditional.
 */
export function findHiddenSearch(
  content: unknown,
  access: Access,
  baseUrl: string,
  work: Work,
): string | undefined {
  if (seesAll(access)) return undefined
  return listReferenceElements(content).find(({ text }) => {
    if (!text.includes('?')) return false
    const conditional = parseConditionalReference(text)
    return !conditional || !maySearchAll(conditional, access, baseUrl, work)
  })?.element
}
