import { listCompartmentParameters } from './compartment.ts'
import { findSearchParameter } from './definitions.ts'
import { type CompiledPath, pathsOf } from './path/compile.ts'
import { evaluatePath } from './path/evaluate.ts'
import type { Resource, SearchParameter } from './r4.ts'
import { isRecord, isResource } from './record.ts'
import { parseReference } from './reference.ts'
import type { IndexEntry } from './search/entry.ts'
import { entriesOf } from './search/index-entries.ts'

// The address of a resource on another server, with its type.
const ADDRESS = /^https?:\/\/.*\/([A-Z][A-Za-z]+)\/[A-Za-z0-9\-.]{1,64}(?:\/_history\/[A-Za-z0-9\-.]{1,64})?$/

/**
 * Whether a compartment reference of the resource names another patient, on this server or elsewhere, or names a patient who
 * cannot be identified (`urn:uuid:…`, `Patient?identifier=…`). Such a resource does not belong to one patient alone (WRITE-2).
 */
export function namesOtherPatient(
  resource: Resource,
  patient: string | ((id: string) => boolean),
  baseUrl: string,
): boolean {
  const isOurs = typeof patient === 'string' ? (id: string) => id === patient : patient
  if (resource.resourceType === 'Binary') return isOtherReference(resource.securityContext, isOurs, baseUrl)
  return listCompartmentParameters(resource.resourceType).some(code => {
    const parameter = findSearchParameter(resource.resourceType, code)
    return (
      parameter !== undefined &&
      (entriesOf(resource, parameter, baseUrl).some(entry => isOther(entry, isOurs)) ||
        hasUntold(resource, parameter, baseUrl))
    )
  })
}

/**
 * Whether there is a reference of which no type can be told, where a parameter takes those to a Patient alone
 * (`subject.where(resolve() is Patient)`): it has no entry, and yet another server may know whom it means. What the
 * reference says of its own type is not believed.
 */
function hasUntold(resource: Resource, parameter: SearchParameter, baseUrl: string): boolean {
  return typelessPaths(resource.resourceType, parameter).some(path =>
    evaluatePath(resource, path).some(it => {
      const address = isRecord(it) && typeof it.reference === 'string' ? it.reference : ''
      if (address === '' || address.startsWith('#')) return false
      return parseReference(address, baseUrl) === undefined && !ADDRESS.test(address)
    }),
  )
}

/** No patient has this id: it stands for a patient of another server, or one that a reference does not identify. */
export const UNKNOWN_PATIENT = ''

/**
 * The ids of the patients that the contained resources are about, at any depth. A contained resource is part of its
 * container (R4 references.html#contained), so who may see the one sees the other.
 */
export function findContainedPatients({ contained }: Resource, baseUrl: string): ReadonlySet<string> {
  const patients = new Set<string>()
  if (contained === undefined) return patients
  if (!Array.isArray(contained) || !contained.every(isResource)) patients.add(UNKNOWN_PATIENT)
  for (const resource of listResources(contained))
    if (namesOtherPatient(resource, id => patients.add(id).has(id), baseUrl)) patients.add(UNKNOWN_PATIENT)
  return patients
}

/** Every resource inside a value: contained ones, and those of a Bundle or of Parameters. */
function* listResources(value: unknown): Generator<Resource> {
  const pending: unknown[] = [value]
  while (pending.length > 0) {
    const next = pending.pop()
    if (typeof next !== 'object' || next === null) continue
    if (isResource(next)) yield next
    for (const member of Object.values(next)) pending.push(member)
  }
}

/** Every patient that a reference in the content names, wherever it stands: also in an extension or a contained resource. */
export function findReferredPatients(content: unknown, baseUrl: string): ReadonlySet<string> {
  const patients = new Set<string>()
  const pending: unknown[] = [content]
  while (pending.length > 0) {
    const next = pending.pop()
    if (typeof next !== 'object' || next === null) continue
    for (const [name, value] of Object.entries(next))
      if (name !== 'reference' || typeof value !== 'string') pending.push(value)
      else for (const id of findPatient(value, baseUrl)) patients.add(id)
  }
  return patients
}

// A search for what is referred to (R4 http.html#trules).
const CONDITIONAL = /^([A-Z][A-Za-z]+)\?/

/**
 * The patient that a reference names. A reference that speaks of a Patient in a way that cannot be read (`Patient?…`,
 * `Patient/%31`, another server's) names one who is not told; an identifier and a `urn:` name nobody of this server.
 */
function findPatient(address: string, baseUrl: string): readonly string[] {
  const local = parseReference(address, baseUrl)
  const type = local?.type ?? ADDRESS.exec(address)?.[1] ?? CONDITIONAL.exec(address)?.[1]
  if (type !== undefined && type !== 'Patient') return []
  if (local) return [local.id]
  return !address.startsWith('urn:') && /patient/i.test(decoded(address)) ? [UNKNOWN_PATIENT] : []
}

function decoded(text: string): string {
  return text.replace(/%([0-7][0-9a-f])/gi, (_all, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
}

const typeless = new WeakMap<SearchParameter, readonly CompiledPath[]>()

/** The paths that ask for a type, without the question. */
function typelessPaths(type: string, parameter: SearchParameter): readonly CompiledPath[] {
  const known = typeless.get(parameter)
  if (known) return known
  const paths = pathsOf(type, parameter)
    .filter(path => path.moves.some(move => move.kind === 'refers'))
    .map(path => ({ ...path, moves: path.moves.filter(move => move.kind !== 'refers') }))
  typeless.set(parameter, paths)
  return paths
}

/** Whether a Reference is to another patient, or to an unknown one. */
function isOtherReference(value: unknown, isOurs: (id: string) => boolean, baseUrl: string): boolean {
  const address = isRecord(value) && typeof value.reference === 'string' ? value.reference : ''
  if (address === '' || address.startsWith('#')) return false
  const local = parseReference(address, baseUrl)
  if (local) return local.type === 'Patient' && !isOurs(local.id)
  const type = ADDRESS.exec(address)?.[1]
  return type === undefined || type === 'Patient'
}

function isOther(entry: IndexEntry, isOurs: (id: string) => boolean): boolean {
  if (entry.kind !== 'reference') return false
  if (entry.type === 'Patient') return entry.id === undefined || !isOurs(entry.id)
  if (entry.url === undefined) return false
  const type = ADDRESS.exec(entry.url)?.[1]
  return type === undefined || type === 'Patient'
}
