import { parsePolicyText } from '../../config/index.ts'
import { isFailure, isId, isRecord, parseReference, type Resource } from '../../fhir/index.ts'
import {
  type AccessPolicy,
  findPolicyMatches,
  formatPolicyProblem,
  type PatientFacts,
} from '../../smart/index.ts'
import { createUserLookup, type FhirReadResult } from '../base/fhir-reader.ts'
import type { AuthContext } from '../oauth/context.ts'
import { type Admin, AdminFailure, type Operation, recordAction } from './action.ts'

export const EXPLAIN_POLICY: Operation = { name: 'policy explain', signIn: 'never asks' }
export const VALIDATE_POLICY: Operation = { name: 'policy validate', signIn: 'never asks' }

/** Whether a text is a valid policy file, and its faults. */
export type PolicyCheck =
  | { readonly valid: true; readonly rules: number }
  | { readonly valid: false; readonly problems: readonly string[] }

export function checkPolicy(text: string): PolicyCheck {
  const policy = parsePolicyText(text)
  return isFailure(policy)
    ? { valid: false, problems: policy.problems.map(formatPolicyProblem) }
    : { valid: true, rules: policy.rules.length }
}

/** A rule that lets clinicians see a patient. */
export interface PatientAccess {
  /** The number of the rule in the file, from 1. Undefined without a policy file. */
  readonly rule: number | undefined
  readonly reason: string
  readonly clinicians: 'all' | readonly string[]
}

/** The clinicians who may see a patient with `user/` scopes, and why. Needs the FHIR server. */
export async function explainPatientAccess(
  admin: Admin,
  context: AuthContext,
  patientId: string,
): Promise<readonly PatientAccess[] | AdminFailure> {
  if (!isId(patientId)) return new AdminFailure('invalid', 'the id of the patient is not valid')
  const policy = context.controls.getPolicy()
  const facts = await findPatientFacts(context, patientId, policy)
  if (isFailure(facts)) return facts
  await recordAction(admin, { operation: EXPLAIN_POLICY, target: patientId })
  if (!policy) return [{ rule: undefined, reason: 'no policy file is set', clinicians: 'all' }]
  return findPolicyMatches(policy, facts).map(match => ({
    rule: match.rule + 1,
    reason: match.reason,
    clinicians: match.clinicians === 'all' ? 'all' : match.clinicians.map(({ type, id }) => `${type}/${id}`),
  }))
}

/** The facts about a patient that rules compare. Care teams are read only if a rule needs them. */
async function findPatientFacts(
  context: AuthContext,
  id: string,
  policy: AccessPolicy | undefined,
): Promise<PatientFacts | AdminFailure> {
  const readPatient = await createUserLookup(context, 'Patient')
  const patient = toResource(await readPatient.resource('Patient', id), `there is no patient ${id}`)
  if (isFailure(patient)) return patient
  const { fhirBaseUrl } = context.settings
  const organization = readReference(patient.managingOrganization, fhirBaseUrl)
  const needsTeams = policy?.rules.some(({ careTeams }) => careTeams === 'own' || careTeams.length > 0)
  const teams = needsTeams ? await findCareTeams(context, id) : []
  if (isFailure(teams)) return teams
  return { id, organization: organization?.type === 'Organization' ? organization.id : undefined, teams }
}

/** More care teams of one patient are not read. */
const MOST_TEAMS = 100

async function findCareTeams(
  context: AuthContext,
  patientId: string,
): Promise<PatientFacts['teams'] | AdminFailure> {
  const read = await createUserLookup(context, 'CareTeam')
  const found = await read(`CareTeam?patient=${patientId}&status=active&_count=${MOST_TEAMS}`)
  const bundle = toResource(found, 'the care teams cannot be read')
  if (isFailure(bundle)) return bundle
  const entries: readonly unknown[] = Array.isArray(bundle.entry) ? bundle.entry : []
  return entries.flatMap(entry => {
    const team = isRecord(entry) && isRecord(entry.resource) ? entry.resource : {}
    const participants: readonly unknown[] = Array.isArray(team.participant) ? team.participant : []
    const members = participants.flatMap(
      one => (isRecord(one) && readReference(one.member, context.settings.fhirBaseUrl)) || [],
    )
    return typeof team.id === 'string' && team.resourceType === 'CareTeam' ? [{ id: team.id, members }] : []
  })
}

function readReference(value: unknown, fhirBaseUrl: string) {
  const reference = isRecord(value) ? value.reference : undefined
  return typeof reference === 'string' ? parseReference(reference, fhirBaseUrl) : undefined
}

function toResource(result: FhirReadResult, absent: string): Resource | AdminFailure {
  if (result.kind === 'found') return result.resource
  return result.kind === 'absent'
    ? new AdminFailure('not_found', absent)
    : new AdminFailure('unavailable', 'the FHIR server is unavailable')
}
