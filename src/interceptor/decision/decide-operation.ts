import { findOperation, type Interaction, operations, resourceTypes } from '../../fhir/index.ts'
import type { Permission } from '../../smart/index.ts'
import type { Decision } from './decision.ts'
import { allOf, type Case, judgeType, refusedFor } from './judge.ts'

type Operation = Extract<Interaction, { readonly kind: 'operation' }>

/** Whether a grant lets an operation through: one that the server does not offer is supported for nobody. */
export function decideOperation(of: Case, operation: Operation): Decision {
  const { name, type, id } = operation
  const rule = findOperation(of.policy.operations ?? operations, operation)
  if (!rule) return refusedFor({ kind: 'unsupported-operation', name })
  const { needs } = rule
  if (needs.kind === 'all-data') return judgeAllData(of, operation.posted === true && !needs.readsOnly)
  if (type === undefined) return refusedFor({ kind: 'unsupported-operation', name })
  if (needs.kind === 'whole-type') return judgeWholeType(of, type)
  const [head, ...tail] = needs.permissions
  const first = judgeType(of, type, head, { id })
  const rest = tail.map(permission => judgeType(of, type, permission, { id }))
  return needs.kind === 'all' ? allOf(first, ...rest) : anyOf(first, ...rest)
}

function anyOf(first: Decision, ...rest: readonly Decision[]): Decision {
  return [first, ...rest].find(decision => decision.allowed) ?? first
}

function judgeWholeType(of: Case, type: string): Decision {
  const decision = anyOf(judgeType(of, type, 'r'), judgeType(of, type, 's'))
  if (!decision.allowed || decision.within === 'everything') return decision
  return refusedFor({ kind: 'not-within', hint: `This operation needs a scope without a filter for ${type}` })
}

const READING: readonly Permission[] = ['r', 's']
const ALL: readonly Permission[] = ['r', 's', 'c', 'u', 'd']

/** The response is not looked into, and what the operation does is not known: only who may do all of it may call it. */
function judgeAllData(of: Case, writes: boolean): Decision {
  const isWhole = (permission: Permission) =>
    resourceTypes.every(type => of.access.filterFor(type, permission) === 'everything')
  if ((writes ? ALL : READING).every(isWhole)) return judgeType(of, 'Patient', 'r')
  const scope = writes ? 'system/*.cruds' : 'system/*.rs'
  return refusedFor({
    kind: 'not-within',
    hint: `This operation needs access to all data, such as ${scope}`,
  })
}
