import { matches, type ResourceReference } from '../fhir/index.ts'
import { type Letter, permits, type ResourceScope } from '../scope/index.ts'
import { type Grant, PORTAL_CLIENT, type Policy } from './grant.ts'
import { narrowed, union } from './limit.ts'
import { mergeValues } from './merge-values.ts'
import { patientReach } from './patient-reach.ts'
import type { Access, Limit, Reach } from './reach.ts'

/** One thing of a grant that reaches something: a scope, or the `fhirUser` of the token for its own resource. */
export interface Part {
  readonly by: ResourceScope | 'fhirUser'
  readonly limits: readonly Limit[]
}

/** What a grant reaches of a type with a letter, and by what. */
export interface Reached {
  readonly reach: Reach
  /** The same as limits of the parts, of which `reach` may have made one out of several. */
  readonly limits: Reach
  readonly parts: readonly Part[]
  /** Scopes that cover type and letter in a context that is honoured, whatever they reach. */
  readonly covering: readonly ResourceScope[]
}

export interface GrantedAccess extends Access {
  reached(type: string, letter: Letter): Reached
}

/** What a grant may touch under a policy; each type and letter is worked out when first asked for. */
export function accessOf(grant: Grant, policy: Policy): GrantedAccess {
  const known = new Map<string, Reached>()
  const reached = (type: string, letter: Letter) => {
    const key = letter + type
    let answer = known.get(key)
    if (!answer) {
      answer = reachedBy(grant, policy, type, letter)
      known.set(key, answer)
    }
    return answer
  }
  return { reached, reach: (type, letter) => reached(type, letter).reach }
}

function reachedBy(grant: Grant, policy: Policy, type: string, letter: Letter): Reached {
  // Contract 5.5: with the service's own rule `r` reads and searches.
  const needed = letter === 's' ? policy.searchLetter : letter
  const covering: ResourceScope[] = []
  const parts: Part[] = []
  for (const scope of grant.scopes) {
    if (!permits(scope, type, needed) || !isHonoured(scope, grant, policy)) continue
    covering.push(scope)
    const limits = scopeReach(scope, grant, policy, type, letter)
    if (limits.length > 0) parts.push({ by: scope, limits })
  }
  // Contract 5.3: a token with `fhirUser` may always read its own user resource.
  const own = grant.fhirUser
  if (letter === 'r' && own?.type === type) parts.push({ by: 'fhirUser', limits: [{ id: own.id }] })
  const limits = union(parts.flatMap(part => part.limits))
  return { reach: limits === 'everything' ? limits : mergeValues(limits), limits, parts, covering }
}

function isHonoured(scope: ResourceScope, grant: Grant, policy: Policy): boolean {
  return (
    policy.contexts.includes(scope.context) || (grant.clientId === PORTAL_CLIENT && scope.context === 'user')
  )
}

function scopeReach(
  scope: ResourceScope,
  grant: Grant,
  policy: Policy,
  type: string,
  letter: Letter,
): readonly Limit[] {
  if (!scope.query.every(pair => isEvaluable(type, pair, policy.fhirBaseUrl))) return []
  return contextReach(scope, grant, policy, type, letter).map(limit => narrowed(limit, scope.query))
}

function contextReach(
  scope: ResourceScope,
  grant: Grant,
  policy: Policy,
  type: string,
  letter: Letter,
): readonly Limit[] {
  switch (scope.context) {
    case 'patient': {
      const limit = grant.patient === undefined ? undefined : patientReach(grant.patient, type, letter)
      return limit ? [limit] : []
    }
    case 'user': {
      const rights = grant.fhirUser ? rightsOf(grant.fhirUser, policy, type, letter) : []
      return rights === 'everything' ? [{}] : rights
    }
    case 'system':
      return [{}]
  }
}

/** What a user may reach by right. "Every clinician may see every patient" (contract 3) is said of clinicians. */
function rightsOf(user: ResourceReference, policy: Policy, type: string, letter: Letter): Reach {
  if (isClinician(user)) return policy.userReach?.(user, type, letter) ?? 'everything'
  const limit = user.type === 'Patient' ? patientReach(user.id, type, letter) : undefined
  return limit ? [limit] : []
}

/** Whether it is one of whom the policy of a site speaks. */
export function isClinician({ type }: ResourceReference): boolean {
  return type === 'Practitioner' || type === 'PractitionerRole'
}

// A parameter that cannot be evaluated grants nothing; asked of an empty resource, it tells whether it can be.
function isEvaluable(type: string, [name, value]: readonly [string, string], baseUrl: string): boolean {
  return matches({ resourceType: type }, name, value, baseUrl) !== undefined
}
