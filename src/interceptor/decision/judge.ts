import {
  type AccessFilter,
  type Constraint,
  computeAccess,
  type EnforcementPolicy,
  type FilterSource,
  type Grant,
  type GrantedAccess,
  isOfNamedOnly,
  isUnrestricted,
  type Permission,
  parseScopes,
  type ScopeContext,
} from '../../smart/index.ts'
import type { Method, Refusal } from '../refusal.ts'
import type { Decision } from './decision.ts'
import { hint } from './hint.ts'

/** What a decision is made of, beside the interaction. */
export interface Case {
  readonly method: Method
  readonly grant: Grant
  readonly policy: EnforcementPolicy
  readonly access: GrantedAccess
}

/** The one resource, or the one patient's compartment, that a request is about. */
export interface Target {
  readonly id?: string | undefined
  readonly patient?: string | undefined
}

/** Whether a grant reaches anything of a type with a permission; of a target, as far as can be told without data. */
export function judgeType(of: Case, type: string, permission: Permission, target: Target = {}): Decision {
  const { unmerged: limits, sources: parts, covering } = of.access.explainFilter(type, permission)
  const within = limits === 'everything' ? limits : limits.filter(limit => mayHold(limit, type, target))
  const by = decidedBy(parts, within)
  if (by !== undefined) return { allowed: true, by, access: of.access, within }
  if (covering.length === 0) return refusedFor(insufficient(of, type, permission))
  return refusedFor({ kind: 'not-within', hint: hint(of, type, permission, covering), by: covering[0]?.text })
}

/** All must allow: the first that refuses decides, else the first. */
export function allOf(first: Decision, ...rest: readonly Decision[]): Decision {
  return first.allowed ? (rest.find(decision => !decision.allowed) ?? first) : first
}

export function refusedFor(refusal: Refusal): Decision {
  return { allowed: false, refusal }
}

export function insufficient(of: Case, type: string, permission: Permission): Refusal {
  const { grant, policy } = of
  const lacking = [
    ...(policy.contexts.includes('patient') && grant.patient === undefined ? (['patient'] as const) : []),
    ...(policy.contexts.includes('user') && grant.fhirUser === undefined ? (['fhirUser'] as const) : []),
  ]
  return {
    kind: 'insufficient-scope',
    method: of.method,
    type,
    permission: permission === 's' ? policy.searchPermission : permission,
    contexts: policy.contexts.filter(context => wouldReach(of, context, type, permission)),
    ...(lacking.length > 0 && { lacking }),
  }
}

/** Whether a scope of a context would reach anything of a type with this token. */
function wouldReach(
  { grant, policy }: Case,
  context: ScopeContext,
  type: string,
  permission: Permission,
): boolean {
  const access = computeAccess({ ...grant, scopes: parseScopes(`${context}/*.cruds`) }, policy)
  return access
    .explainFilter(type === '*' ? 'Patient' : type, permission)
    .sources.some(({ by }) => by !== 'fhirUser')
}

function mayHold(limit: Constraint, type: string, target: Target): boolean {
  const { id, patient } = target
  if (id !== undefined && limit.id !== undefined && limit.id !== id) return false
  if (limit.panel && isOfNamedOnly(limit.panel)) return mayBeOf(limit.panel.patients, limit, type, target)
  if (limit.patient === undefined) return true
  if (patient !== undefined && limit.patient !== patient) return false
  return type !== 'Patient' || id === undefined || limit.patient === id
}

/** A search of one who has no patients is answered, with nothing; what is of one resource, or writes, is refused. */
function mayBeOf(
  patients: ReadonlySet<string>,
  limit: Constraint,
  type: string,
  { id, patient }: Target,
): boolean {
  const asked = patient ?? (type === 'Patient' ? id : undefined)
  if (asked !== undefined) return patients.has(asked)
  return patients.size > 0 || (id === undefined && !limit.exclusive)
}

/** The first part of the grant among whose limits is one that is left. */
function decidedBy(parts: readonly FilterSource[], within: AccessFilter): FilterSource['by'] | undefined {
  const left = within === 'everything' ? undefined : new Set(within)
  const decides = (limit: Constraint) => left?.has(limit) ?? isUnrestricted(limit)
  return parts.find(part => part.constraints.some(decides))?.by
}
