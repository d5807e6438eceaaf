import type { ResourceReference } from '../../fhir/index.ts'
import type { AccessPolicy, PolicyRule } from './access-policy.ts'

/** The patients whom a clinician may see: those of any of these. Whom the last three mean, only data can tell. */
export interface Panel {
  readonly patients: ReadonlySet<string>
  readonly organizations: readonly string[]
  readonly careTeams: readonly string[]
  /** Whose care teams count too. */
  readonly member?: ResourceReference
}

/** Whether a panel holds nobody but the patients whom it names: then no data can tell of others. */
export function isOfNamedOnly({ organizations, careTeams, member }: Panel): boolean {
  return organizations.length === 0 && careTeams.length === 0 && member === undefined
}

/** Tells from the data whether a patient is on a panel for another reason than being named. */
export interface PanelMembership {
  includes(panel: Panel, patient: string): boolean
}

/** Finds out who of these patients is on the panels, or why it cannot be told. */
export type FindPanelMembership<P> = (
  panels: readonly Panel[],
  patients: ReadonlySet<string>,
) => PanelMembership | P | Promise<PanelMembership | P>

/** The patients of a clinician: all, or a panel, which may hold nobody. */
export function findPanel({ rules }: AccessPolicy, user: ResourceReference): Panel | 'all' {
  const own = rules.filter(rule => names(rule, user))
  if (own.some(rule => rule.patients === 'all')) return 'all'
  const isMember = own.some(rule => rule.careTeams === 'own')
  return {
    patients: new Set(own.flatMap(rule => rule.patients)),
    organizations: own.flatMap(rule => rule.organizations),
    careTeams: own.flatMap(rule => (rule.careTeams === 'own' ? [] : rule.careTeams)),
    ...(isMember && { member: user }),
  }
}

function names({ clinicians }: PolicyRule, { type, id }: ResourceReference): boolean {
  return clinicians === 'all' || clinicians.some(it => it.type === type && it.id === id)
}
