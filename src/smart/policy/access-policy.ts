import type { ResourceReference } from '../../fhir/index.ts'

/** What a policy file says (`smart.fhir.policy-file`): which clinicians may see which patients. */
export interface AccessPolicy {
  readonly rules: readonly PolicyRule[]
}

/** Who may see whom. A clinician whom several rules name has all of them; whom none names sees no patient. */
export interface PolicyRule {
  readonly clinicians: 'all' | readonly ResourceReference[]
  readonly patients: 'all' | readonly string[]
  /** Patients whose managing organization is one of these. */
  readonly organizations: readonly string[]
  /** Patients of these active care teams, or of those that the clinician is a member of. */
  readonly careTeams: 'own' | readonly string[]
}
