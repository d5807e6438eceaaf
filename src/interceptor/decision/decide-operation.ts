import { findOperation, type Interaction, operations, resourceTypes } from '../../fhir/index.ts'
import { isProtected, type Permission } from '../../smart/index.ts'
import { checkType, deny, requireAll } from './check-type.ts'
import type { Decision, DecisionContext } from './decision.ts'

type Operation = Extract<Interaction, { readonly kind: 'operation' }>

/** Decides on an operation. One that the server does not offer is refused, whatever the grant. */
export function decideOperation(context: DecisionContext, operation: Operation): Decision {
  const { name, type, id } = operation
  const rule = findOperation(context.policy.operations ?? operations, operation)
  if (!rule) return deny({ kind: 'unsupported-operation', name })
  const { needs } = rule
  if (needs.kind === 'all-data') return checkAllData(context, operation.posted === true && !needs.readsOnly)
  if (type === undefined) return deny({ kind: 'unsupported-operation', name })
  if (needs.kind === 'whole-type') return checkWholeType(context, type)
  const [head, ...tail] = needs.permissions
  const first = checkType(context, type, head, { id })
  const rest = tail.map(permission => checkType(context, type, permission, { id }))
  return needs.kind === 'all' ? requireAll(first, ...rest) : requireAny(first, ...rest)
}

function requireAny(first: Decision, ...rest: readonly Decision[]): Decision {
  return [first, ...rest].find(decision => decision.allowed) ?? first
}

function checkWholeType(context: DecisionContext, type: string): Decision {
  const decision = requireAny(checkType(context, type, 'r'), checkType(context, type, 's'))
  if (!decision.allowed || decision.within === 'everything') return decision
  return deny({ kind: 'not-within', hint: `This operation needs a scope without a filter for ${type}` })
}

const READING: readonly Permission[] = ['r', 's']
const ALL: readonly Permission[] = ['r', 's', 'c', 'u', 'd']

/** The effect and the response of such an operation are unknown, so it needs access to all data. */
function checkAllData(context: DecisionContext, writes: boolean): Decision {
  const isWhole = (permission: Permission) =>
    resourceTypes.every(
      type =>
        isProtected(context.policy, type, permission) ||
        context.access.filterFor(type, permission) === 'everything',
    )
  if ((writes ? ALL : READING).every(isWhole)) return checkType(context, 'Patient', 'r')
  const scope = writes ? 'system/*.cruds' : 'system/*.rs'
  return deny({
    kind: 'not-within',
    hint: `This operation needs access to all data, such as ${scope}`,
  })
}
