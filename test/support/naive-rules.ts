import type { Resource } from '../../src/fhir/index.ts'
import type { TestCaller } from './guarded-fhir.ts'

/**
 * The rules PATIENT, USER, GRANULAR and WRITE of the specification implemented a second time, for the few types and parameters
 * of the property tests, without the code under test.
 */
export type NaiveLetter = 'c' | 'r' | 'u' | 'd' | 's'

const SHARED = ['Practitioner', 'Organization']
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  Condition: ['subject', 'asserter'],
  Observation: ['subject', 'performer'],
  Encounter: ['subject'],
}

/** With the search permission `r`, which is the default. */
export function mayNaively(asking: TestCaller, permission: NaiveLetter, resource: Resource): boolean {
  if (permission === 'r' && asking.fhirUser === `${resource.resourceType}/${resource.id}`) return true
  return asking.scope.split(' ').some(scope => scopeMay(scope, asking, permission, resource))
}

/** New content, which also refers to no other patient anywhere where a `patient/` scope permits it. */
export function mayWriteNaively(asking: TestCaller, permission: 'c' | 'u', resource: Resource): boolean {
  return asking.scope.split(' ').some(scope => {
    if (!scopeMay(scope, asking, permission, resource)) return false
    const named = [...JSON.stringify(resource).matchAll(/"reference":"Patient\/(\w+)"/g)].map(([, id]) => id)
    return !scope.startsWith('patient/') || named.every(id => id === asking.patient)
  })
}

function scopeMay(
  scope: string,
  { patient, fhirUser }: TestCaller,
  permission: NaiveLetter,
  resource: Resource,
): boolean {
  const [level = '', rest = ''] = scope.split('/')
  const [type = '', tail = ''] = rest.split('.')
  const [permissions = '', query] = tail.split('?')
  const needed = permission === 's' ? 'r' : permission
  if (!permissions.includes(needed) || (type !== '*' && type !== resource.resourceType)) return false
  if (query !== undefined && !matchesNaively(resource, query)) return false
  if (level === 'system') return true
  if (level === 'user') return fhirUser !== undefined
  if (level !== 'patient' || typeof patient !== 'string') return false
  return ofPatient(patient, permission, resource)
}

function ofPatient(patient: string, permission: NaiveLetter, resource: Resource): boolean {
  const writes = permission !== 'r' && permission !== 's'
  if (SHARED.includes(resource.resourceType)) return !writes
  if (resource.resourceType === 'Patient') return permission === 'c' || resource.id === patient
  const patients = (MEMBERS[resource.resourceType] ?? [])
    .flatMap(name => referencesIn(resource[name]))
    .filter(text => text.startsWith('Patient/'))
  if (writes && patients.some(text => text !== `Patient/${patient}`)) return false
  return patients.includes(`Patient/${patient}`)
}

function referencesIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn)
  const { reference } = (value ?? {}) as { reference?: unknown }
  return typeof reference === 'string' ? [reference] : []
}

/** `category=a&status=final`, on the resource alone. */
export function matchesNaively(resource: Resource, query: string): boolean {
  return query.split('&').every(pair => {
    const [name = '', value = ''] = pair.split('=')
    return valuesOf(resource, name).some(it => value.split(',').includes(it))
  })
}

function valuesOf(resource: Resource, name: string): readonly string[] {
  if (name === '_id') return [String(resource.id)]
  if (name === 'patient') return referencesIn(resource.subject).map(text => text.replace('Patient/', ''))
  if (name === 'status') return resource.resourceType === 'Condition' ? [] : [String(resource.status)]
  const concepts = resource.category as readonly { coding: readonly { code: string }[] }[] | undefined
  return name === 'category' ? (concepts ?? []).flatMap(it => it.coding.map(({ code }) => code)) : []
}
