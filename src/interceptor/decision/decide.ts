import type { Interaction, Params } from '../../fhir/index.ts'
import {
  computeAccess,
  type EnforcementPolicy,
  type Grant,
  type GrantedAccess,
  noAccess,
} from '../../smart/index.ts'
import type { Method } from '../refusal.ts'
import { checkChains } from './check-chains.ts'
import { checkType, requireAll } from './check-type.ts'
import { checkTypes } from './check-types.ts'
import { decideOperation } from './decide-operation.ts'
import type { Decision, DecisionContext } from './decision.ts'

type InteractionOf<Kind extends Interaction['kind']> = Extract<Interaction, { kind: Kind }>

/**
 * Decides whether a grant permits an interaction under a policy. A pure function that uses no stored data: the server
 * still applies the access filters of the decision. Pass `access` to decide several times for one grant.
 */
export function decide(
  interaction: Interaction,
  grant: Grant,
  policy: EnforcementPolicy,
  access: GrantedAccess = computeAccess(grant, policy),
): Decision {
  const makeContext = (method: Method): DecisionContext => ({ method, grant, policy, access })
  switch (interaction.kind) {
    case 'capabilities':
    case 'smart-configuration':
      return { allowed: true, by: 'public', access: noAccess, within: [] }
    case 'bundle':
      return { allowed: true, by: 'entries', access, within: [] }
    case 'read':
    case 'vread':
    case 'history-instance':
      return checkType(makeContext('GET'), interaction.type, 'r', interaction)
    case 'history-type':
      return checkType(makeContext('GET'), interaction.type, 's')
    case 'history-system':
      return checkTypes(makeContext('GET'), interaction.params)
    case 'search-system':
    case 'search-type':
    case 'search-compartment':
      return decideSearch(makeContext(interaction.posted ? 'POST' : 'GET'), interaction)
    case 'create':
      return decideWrite(makeContext('POST'), interaction.type, 'c', interaction.ifNoneExist)
    case 'update':
      return checkType(makeContext('PUT'), interaction.type, 'u', interaction)
    case 'patch':
      return checkType(makeContext('PATCH'), interaction.type, 'u', interaction)
    case 'delete':
      return checkType(makeContext('DELETE'), interaction.type, 'd', interaction)
    case 'update-conditional':
      return decideWrite(makeContext('PUT'), interaction.type, 'u', interaction.params)
    case 'patch-conditional':
      return decideWrite(makeContext('PATCH'), interaction.type, 'u', interaction.params)
    case 'delete-conditional':
      return decideWrite(makeContext('DELETE'), interaction.type, 'd', interaction.params)
    case 'operation':
      return decideOperation(makeContext(interaction.posted ? 'POST' : 'GET'), interaction)
  }
}

function decideSearch(
  context: DecisionContext,
  search: InteractionOf<'search-system' | 'search-type' | 'search-compartment'>,
): Decision {
  const target = search.kind === 'search-compartment' ? { patient: search.id } : {}
  if (search.kind === 'search-system' || search.type === '*')
    return checkTypes(context, search.params, target)
  return requireAll(
    checkType(context, search.type, 's', target),
    ...checkChains(context, search.type, search.params),
  )
}

/** A conditional write is also a search: its response reveals whether a resource matches. */
function decideWrite(
  context: DecisionContext,
  type: string,
  permission: 'c' | 'u' | 'd',
  criteria: Params | undefined,
): Decision {
  const write = checkType(context, type, permission)
  return criteria === undefined
    ? write
    : requireAll(write, checkType(context, type, 's'), ...checkChains(context, type, criteria))
}
