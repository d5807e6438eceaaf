import type { Interaction, Params } from '../../fhir/index.ts'
import {
  computeAccess,
  type EnforcementPolicy,
  type Grant,
  type GrantedAccess,
  noAccess,
} from '../../smart/index.ts'
import type { Method } from '../refusal.ts'
import { judgeChains } from './chains.ts'
import { decideOperation } from './decide-operation.ts'
import type { Decision } from './decision.ts'
import { allOf, type Case, judgeType } from './judge.ts'
import { judgeTypes } from './judge-types.ts'

type Of<Kind extends Interaction['kind']> = Extract<Interaction, { kind: Kind }>

/**
 * Whether a grant lets an interaction through under a policy (service.md 5.2, contract 5). Pure, and before any data
 * is touched: what it allows, the stored content may still refuse, by the reach that it gives. Who decides often for
 * one grant keeps its access.
 */
export function decide(
  interaction: Interaction,
  grant: Grant,
  policy: EnforcementPolicy,
  access: GrantedAccess = computeAccess(grant, policy),
): Decision {
  const from = (method: Method): Case => ({ method, grant, policy, access })
  switch (interaction.kind) {
    case 'capabilities':
    case 'smart-configuration':
      return { allowed: true, by: 'public', access: noAccess, within: [] }
    case 'bundle':
      return { allowed: true, by: 'entries', access, within: [] }
    case 'read':
    case 'vread':
    case 'history-instance':
      return judgeType(from('GET'), interaction.type, 'r', interaction)
    case 'history-type':
      return judgeType(from('GET'), interaction.type, 's')
    case 'history-system':
      return judgeTypes(from('GET'), interaction.params)
    case 'search-system':
    case 'search-type':
    case 'search-compartment':
      return decideSearch(from(interaction.posted ? 'POST' : 'GET'), interaction)
    case 'create':
      return decideWrite(from('POST'), interaction.type, 'c', interaction.ifNoneExist)
    case 'update':
      return judgeType(from('PUT'), interaction.type, 'u', interaction)
    case 'patch':
      return judgeType(from('PATCH'), interaction.type, 'u', interaction)
    case 'delete':
      return judgeType(from('DELETE'), interaction.type, 'd', interaction)
    case 'update-conditional':
      return decideWrite(from('PUT'), interaction.type, 'u', interaction.params)
    case 'patch-conditional':
      return decideWrite(from('PATCH'), interaction.type, 'u', interaction.params)
    case 'delete-conditional':
      return decideWrite(from('DELETE'), interaction.type, 'd', interaction.params)
    case 'operation':
      return decideOperation(from(interaction.posted ? 'POST' : 'GET'), interaction)
  }
}

function decideSearch(
  of: Case,
  search: Of<'search-system' | 'search-type' | 'search-compartment'>,
): Decision {
  const target = search.kind === 'search-compartment' ? { patient: search.id } : {}
  if (search.kind === 'search-system' || search.type === '*') return judgeTypes(of, search.params, target)
  return allOf(judgeType(of, search.type, 's', target), ...judgeChains(of, search.type, search.params))
}

/** A conditional write is a search as well: it tells whether something matches (attacks.md 18). */
function decideWrite(
  of: Case,
  type: string,
  permission: 'c' | 'u' | 'd',
  criteria: Params | undefined,
): Decision {
  const write = judgeType(of, type, permission)
  return criteria === undefined
    ? write
    : allOf(write, judgeType(of, type, 's'), ...judgeChains(of, type, criteria))
}
