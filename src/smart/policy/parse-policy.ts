import { isId, isRecord, parseReference, type ResourceReference } from '../../fhir/index.ts'
import type { AccessPolicy, PolicyRule } from './access-policy.ts'

/** What is wrong with a policy file, and where. */
export interface InvalidPolicy {
  readonly problem: string
}

const RULE_KEYS = ['clinicians', 'patients', 'organizations', 'careTeams']

/** The rights that a policy file states. Whatever is not understood makes the whole of it unusable. */
export function parsePolicy(value: unknown): AccessPolicy | InvalidPolicy {
  if (!isRecord(value)) return bad('expected rules')
  const unknown = Object.keys(value).find(key => key !== 'rules')
  if (unknown !== undefined) return bad(`unknown name ${unknown}; expected rules`)
  if (!Array.isArray(value.rules)) return bad('rules: expected a list')
  const rules: PolicyRule[] = []
  for (const [at, candidate] of value.rules.entries()) {
    const rule = readRule(candidate)
    if ('problem' in rule) return bad(`rules[${at}]${rule.problem}`)
    rules.push(rule)
  }
  return { rules }
}

function readRule(value: unknown): PolicyRule | InvalidPolicy {
  if (!isRecord(value)) return bad(`: expected ${RULE_KEYS.join(', ')}`)
  const unknown = Object.keys(value).find(key => !RULE_KEYS.includes(key))
  if (unknown !== undefined) return bad(`: unknown name ${unknown}; expected ${RULE_KEYS.join(', ')}`)
  const { patients = [], organizations = [], careTeams = [] } = value
  const clinicians = value.clinicians === 'all' ? 'all' : listOf(value.clinicians, clinicianOf)
  if (!clinicians || clinicians.length === 0)
    return bad(".clinicians: expected 'all', or a list such as [Practitioner/1]")
  const seen = patients === 'all' ? 'all' : listOf(patients, idOf('Patient'))
  if (!seen) return bad(".patients: expected 'all', or a list of patient ids")
  const managed = listOf(organizations, idOf('Organization'))
  if (!managed) return bad('.organizations: expected a list such as [Organization/1]')
  const teams = careTeams === 'own' ? 'own' : listOf(careTeams, idOf('CareTeam'))
  if (!teams) return bad(".careTeams: expected 'own', or a list such as [CareTeam/1]")
  return { clinicians, patients: seen, organizations: managed, careTeams: teams }
}

function listOf<Item>(
  value: unknown,
  read: (item: unknown) => Item | undefined,
): readonly Item[] | undefined {
  if (!Array.isArray(value)) return undefined
  const items = value.map(read)
  return items.every(item => item !== undefined) ? items : undefined
}

function clinicianOf(item: unknown): ResourceReference | undefined {
  const reference = typeof item === 'string' ? parseReference(item, '') : undefined
  if (reference?.version !== undefined) return undefined
  return reference?.type === 'Practitioner' || reference?.type === 'PractitionerRole' ? reference : undefined
}

/** An id, by itself or with its type. */
function idOf(type: string): (item: unknown) => string | undefined {
  return item => {
    if (typeof item !== 'string') return undefined
    const id = item.startsWith(`${type}/`) ? item.slice(type.length + 1) : item
    return isId(id) ? id : undefined
  }
}

function bad(problem: string): InvalidPolicy {
  return { problem }
}
