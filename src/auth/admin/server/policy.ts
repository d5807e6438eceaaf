import { Type } from 'typebox'
import { parsePolicyText } from '../../../config/index.ts'
import { type Failed, fail, isFailure, isRecord } from '../../../core/index.ts'
import { Members } from '../../../endpoint/index.ts'
import { isId, parseReference, type Resource } from '../../../fhir/index.ts'
import {
  type AccessPolicy,
  findPolicyMatches,
  formatPolicyProblem,
  type PatientFacts,
} from '../../../smart/index.ts'
import { type Fault, makeFault } from '../../base/fault.ts'
import { createUserLookup, type FhirReadResult, type ReaderCaller } from '../../base/fhir-reader.ts'
import { LIMITS } from '../../base/limits.ts'
import type { AuthContext } from '../../oauth/context.ts'
import {
  type Admin,
  type AdminFailure,
  type AdminOperation,
  describeCaller,
  failAdmin,
  recordAction,
} from '../base/action.ts'
import { defineEndpoint } from '../subject/endpoint.ts'

const EXPLAIN_POLICY: AdminOperation = { name: 'policy explain', signIn: 'never asks', isForAuditors: true }
export const VALIDATE_POLICY: AdminOperation = { name: 'policy validate', signIn: 'never asks' }

/** The number of rules of a valid policy file, or its faults. */
export function checkPolicy(text: string): PolicyCheck {
  const policy = parsePolicyText(text)
  return isFailure(policy)
    ? fail({ problems: policy.problems.map(formatPolicyProblem) })
    : { rules: policy.rules.length }
}

export type PolicyCheck = { readonly rules: number } | ({ readonly problems: readonly string[] } & Failed)

/** A rule that lets clinicians see a patient. */
export interface PatientAccess {
  /** The number of the rule in the file, from 1. Absent without a policy file. */
  readonly rule?: number
  readonly reason: string
  readonly clinicians: 'all' | readonly string[]
}

/** The clinicians who may see a patient with `user/` scopes, and why. Needs the FHIR server. */
export async function explainPatientAccess(
  admin: Admin,
  context: AuthContext,
  patientId: string,
): Promise<readonly PatientAccess[] | AdminFailure> {
  if (!isId(patientId)) return failAdmin('patient-id-malformed')
  const policy = context.controls.getPolicy()
  const facts = await findPatientFacts(context, patientId, policy, describeCaller(admin, 'policy'))
  if (isFailure(facts)) return facts
  const refused = await recordAction(admin, { operation: EXPLAIN_POLICY, target: patientId })
  if (refused) return refused
  if (!policy) return [{ reason: 'no policy file is set', clinicians: 'all' }]
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
  caller: ReaderCaller,
): Promise<PatientFacts | AdminFailure> {
  const readPatient = await createUserLookup(context, 'Patient', caller)
  const patient = toResource(await readPatient.resource('Patient', id), makeFault('patient-absent', { id }))
  if (isFailure(patient)) return patient
  const { fhirBaseUrl } = context.settings
  const organization = readReference(patient.managingOrganization, fhirBaseUrl)
  const needsTeams = policy?.rules.some(({ careTeams }) => careTeams === 'own' || careTeams.length > 0)
  const teams = needsTeams ? await findCareTeams(context, id, caller) : []
  if (isFailure(teams)) return teams
  return { id, organization: organization?.type === 'Organization' ? organization.id : undefined, teams }
}

/** More care teams of one patient are not read. */
const MAX_TEAMS = 100

async function findCareTeams(
  context: AuthContext,
  patientId: string,
  caller: ReaderCaller,
): Promise<PatientFacts['teams'] | AdminFailure> {
  const read = await createUserLookup(context, 'CareTeam', caller)
  const found = await read(`CareTeam?patient=${patientId}&status=active&_count=${MAX_TEAMS}`)
  const bundle = toResource(found, makeFault('care-teams-unreadable'))
  if (isFailure(bundle)) return bundle
  const entries: readonly unknown[] = Array.isArray(bundle.entry) ? bundle.entry : []
  return entries.flatMap(entry => {
    const team = isRecord(entry) && isRecord(entry.resource) ? entry.resource : {}
    const participants: readonly unknown[] = Array.isArray(team.participant) ? team.participant : []
    const members = participants.flatMap(
      participant =>
        (isRecord(participant) && readReference(participant.member, context.settings.fhirBaseUrl)) || [],
    )
    return typeof team.id === 'string' && team.resourceType === 'CareTeam' ? [{ id: team.id, members }] : []
  })
}

function readReference(value: unknown, fhirBaseUrl: string) {
  const reference = isRecord(value) ? value.reference : undefined
  return typeof reference === 'string' ? parseReference(reference, fhirBaseUrl) : undefined
}

function toResource(result: FhirReadResult, fault: Fault): Resource | AdminFailure {
  if (result.kind === 'found') return result.resource
  return result.kind === 'absent'
    ? failAdmin('patient-not-found', { fault })
    : failAdmin('fhir-server-unavailable')
}

export const policyEndpoints = [
  defineEndpoint({
    method: 'POST',
    path: '/policy/validate',
    title: 'Validate a policy file',
    description: 'Changes nothing.',
    body: Members({
      policy: Type.String({ description: 'YAML or JSON.', maxLength: LIMITS.policyCharacters }),
    }),
    result: Members({
      valid: Type.Boolean(),
      rules: Type.Optional(Type.Integer()),
      problems: Type.Optional(Type.Array(Type.String())),
    }),
    operation: VALIDATE_POLICY,
    async handle({ body: { policy } }) {
      const checked = checkPolicy(policy)
      return isFailure(checked)
        ? { valid: false, problems: checked.problems }
        : { valid: true, rules: checked.rules }
    },
  }),
  defineEndpoint({
    method: 'GET',
    path: '/policy/patients/:id',
    title: 'The clinicians who may see a patient, and why',
    description:
      'By the policy in effect on this server, for `user/` scopes. Reads the patient from the FHIR server.',
    result: Members({
      items: Type.Array(
        Members({
          rule: Type.Optional(
            Type.Integer({
              description: 'The number of the rule, from 1. Absent without a policy file.',
            }),
          ),
          reason: Type.String(),
          clinicians: Type.Union([Type.Literal('all'), Type.Array(Type.String())]),
        }),
      ),
    }),
    operation: EXPLAIN_POLICY,
    async handle({ admin, context, params: { id = '' } }) {
      const items = await explainPatientAccess(admin, context, id)
      return isFailure(items) ? items : { items }
    },
  }),
]
