import { type Failed, fail, isRecord } from '../core/index.ts'
import {
  isId,
  listSearchParameters,
  type Permission,
  parseReference,
  type ResourceReference,
} from '../fhir/index.ts'
import {
  type AccessFilter,
  type Constraint,
  hasCompartment,
  isOfNamedOnly,
  type Panel,
} from './access-filter.ts'
import { type EnforcementPolicy, isClinician } from './grant.ts'

/** The contents of a policy file (`smart.fhir.policy-file`): which clinicians may see which patients. */
export interface AccessPolicy {
  readonly rules: readonly PolicyRule[]
}

/** All rules that match a clinician apply. A clinician matched by no rule sees no patients. */
interface PolicyRule {
  readonly clinicians: 'all' | readonly ResourceReference[]
  readonly patients: 'all' | readonly string[]
  /** Patients whose managing organization is one of these. */
  readonly organizations: readonly string[]
  /** Patients of these active care teams, or of those that the clinician is a member of. */
  readonly careTeams: 'own' | readonly string[]
}

/** The faults of a policy file. */
export interface InvalidPolicy extends Failed {
  /** The first one, with its position. */
  readonly problem: string
  readonly problems: readonly PolicyProblem[]
}

export interface PolicyProblem {
  /** The position in the file: `['rules', 0, 'patients']`. */
  readonly path: readonly (string | number)[]
  readonly text: string
  /** From 1, if it is known. */
  readonly line?: number | undefined
}

const RULE_KEYS = ['clinicians', 'patients', 'organizations', 'careTeams']

/** Parses a policy file. Any unknown part makes the whole file invalid. */
export function parsePolicy(value: unknown): AccessPolicy | InvalidPolicy {
  if (!isRecord(value)) return failPolicy([{ path: [], text: 'expected a list with the name rules' }])
  const problems = listUnknown(value, [], ['rules'])
  if (!Array.isArray(value.rules))
    return failPolicy([...problems, { path: ['rules'], text: 'expected a list' }])
  const rules = value.rules.flatMap((rule: unknown, at) => readRule(rule, ['rules', at], problems) ?? [])
  return problems.length > 0 ? failPolicy(problems) : { rules }
}

function listUnknown(value: object, path: PolicyProblem['path'], known: readonly string[]): PolicyProblem[] {
  const unknown = Object.keys(value).filter(key => !known.includes(key))
  return unknown.map(key => ({ path: [...path, key], text: `unknown name; expected ${known.join(', ')}` }))
}

/** A rule; undefined if it has problems, which are added to the list. */
function readRule(
  value: unknown,
  path: PolicyProblem['path'],
  problems: PolicyProblem[],
): PolicyRule | undefined {
  if (!isRecord(value)) {
    problems.push({ path, text: `expected ${RULE_KEYS.join(', ')}` })
    return undefined
  }
  problems.push(...listUnknown(value, path, RULE_KEYS))
  const { patients = [], organizations = [], careTeams = [] } = value
  const require = <Read>(read: Read | undefined, member: string, text: string): Read | undefined => {
    if (read === undefined) problems.push({ path: [...path, member], text })
    return read
  }
  const named = value.clinicians === 'all' ? 'all' : readList(value.clinicians, readClinician)
  const clinicians = require(named?.length === 0
    ? undefined
    : named, 'clinicians', "expected 'all', or a list such as [Practitioner/1]")
  const seen = require(patients === 'all'
    ? 'all'
    : readList(patients, createIdReader('Patient')), 'patients', "expected 'all', or a list of patient ids")
  const managed = require(readList(
    organizations,
    createIdReader('Organization'),
  ), 'organizations', 'expected a list such as [Organization/1]')
  const teams = require(careTeams === 'own'
    ? 'own'
    : readList(
        careTeams,
        createIdReader('CareTeam'),
      ), 'careTeams', "expected 'own', or a list such as [CareTeam/1]")
  if (!clinicians || !seen || !managed || !teams) return undefined
  return { clinicians, patients: seen, organizations: managed, careTeams: teams }
}

function readList<Item>(
  value: unknown,
  read: (item: unknown) => Item | undefined,
): readonly Item[] | undefined {
  if (!Array.isArray(value)) return undefined
  const items = value.map(read)
  return items.every(item => item !== undefined) ? items : undefined
}

function readClinician(item: unknown): ResourceReference | undefined {
  const reference = typeof item === 'string' ? parseReference(item, '') : undefined
  return reference && reference.version === undefined && isClinician(reference) ? reference : undefined
}

/** An id, by itself or with its type. */
function createIdReader(type: string): (item: unknown) => string | undefined {
  return item => {
    if (typeof item !== 'string') return undefined
    const id = item.startsWith(`${type}/`) ? item.slice(type.length + 1) : item
    return isId(id) ? id : undefined
  }
}

export function failPolicy(problems: readonly PolicyProblem[]): InvalidPolicy {
  return fail({ problem: problems.slice(0, 1).map(formatPolicyProblem).join(''), problems })
}

/** `rules[0].patients: expected a list (line 3)` */
export function formatPolicyProblem({ path, text, line }: PolicyProblem): string {
  const position = path.map(part => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('')
  const where = line === undefined ? '' : ` (line ${line})`
  return position === '' ? `${text}${where}` : `${position.slice(1)}: ${text}${where}`
}

/** Whether a policy gives access to the patients of care teams. */
export function givesAccessByCareTeam(policy: AccessPolicy | undefined): boolean {
  return policy?.rules.some(({ careTeams }) => careTeams === 'own' || careTeams.length > 0) ?? false
}

// Few enough that each patient can be a constraint of its own, which every server supports.
const FEW = 50

const REMEMBERED = 1000

/** A clinician's own rights: everything except the data of patients who are not on the panel. */
export function createUserFilter(rights: AccessPolicy): NonNullable<EnforcementPolicy['userFilter']> {
  const panels = new Map<string, Panel | 'all'>()
  const panelFor = (user: ResourceReference): Panel | 'all' => {
    const key = `${user.type}/${user.id}`
    const panel = panels.get(key) ?? findPanel(rights, user)
    if (panels.size >= REMEMBERED) panels.clear()
    panels.set(key, panel)
    return panel
  }
  return (user, type, permission) => findPanelFilter(panelFor(user), type, permission)
}

function findPanelFilter(panel: Panel | 'all', type: string, permission: Permission): AccessFilter {
  if (panel === 'all') return 'everything'
  if (!hasCompartment(type)) return namesPatients(type) ? [] : 'everything'
  const exclusive = permission === 'r' || permission === 's' ? {} : ({ exclusive: true } as const)
  if (isListed(panel)) return [...panel.patients].map((patient): Constraint => ({ patient, ...exclusive }))
  return [{ panel, ...exclusive }]
}

function isListed(panel: Panel): boolean {
  const { size } = panel.patients
  return isOfNamedOnly(panel) && size > 0 && size <= FEW
}

// A Bundle and Parameters contain anything; the others may refer to patients without a search parameter for it.
const MAY_NAME_PATIENTS: ReadonlySet<string> = new Set([
  'BiologicallyDerivedProduct',
  'Bundle',
  'DeviceMetric',
  'EnrollmentResponse',
  'Linkage',
  'MessageHeader',
  'Parameters',
  'PaymentNotice',
  'PaymentReconciliation',
  'Subscription',
  'VerificationResult',
])

/** Whether a type outside all compartments may name patients, as a Group does. */
export function namesPatients(type: string): boolean {
  return (
    MAY_NAME_PATIENTS.has(type) ||
    listSearchParameters(type).some(({ target }) => target?.includes('Patient'))
  )
}

/** The patients of a clinician: all, or a panel, which may be empty. */
function findPanel({ rules }: AccessPolicy, user: ResourceReference): Panel | 'all' {
  const own = rules.filter(rule => isFor(rule, user))
  if (own.some(rule => rule.patients === 'all')) return 'all'
  const isMember = own.some(rule => rule.careTeams === 'own')
  return {
    patients: new Set(own.flatMap(rule => rule.patients)),
    organizations: own.flatMap(rule => rule.organizations),
    careTeams: own.flatMap(rule => (rule.careTeams === 'own' ? [] : rule.careTeams)),
    ...(isMember && { member: user }),
  }
}

function isFor({ clinicians }: PolicyRule, { type, id }: ResourceReference): boolean {
  return clinicians === 'all' || clinicians.some(it => it.type === type && it.id === id)
}

/** The facts about a patient that the rules of a policy compare. */
export interface PatientFacts {
  readonly id: string
  /** The id of the managing organization. */
  readonly organization: string | undefined
  /** The active care teams. */
  readonly teams: readonly { readonly id: string; readonly members: readonly ResourceReference[] }[]
}

export interface PolicyMatch {
  /** The position of the rule in the file. */
  readonly rule: number
  readonly reason: string
  readonly clinicians: 'all' | readonly ResourceReference[]
}

/** The rules that let clinicians see a patient, and why. */
export function findPolicyMatches({ rules }: AccessPolicy, patient: PatientFacts): readonly PolicyMatch[] {
  return rules.flatMap((rule, at) => explainRule(rule, patient).map(match => ({ rule: at, ...match })))
}

function explainRule(
  rule: PolicyRule,
  { id, organization, teams }: PatientFacts,
): Omit<PolicyMatch, 'rule'>[] {
  const { clinicians, patients, organizations, careTeams } = rule
  const named = careTeams === 'own' ? [] : teams.filter(team => careTeams.includes(team.id))
  const reasons = [
    ...(patients === 'all' ? ['the rule is for all patients'] : []),
    ...(patients !== 'all' && patients.includes(id) ? ['the rule names the patient'] : []),
    ...(organization !== undefined && organizations.includes(organization)
      ? [`Organization/${organization} manages the patient`]
      : []),
    ...named.map(team => `CareTeam/${team.id} treats the patient`),
  ]
  const members = careTeams === 'own' ? explainMembers(rule, teams) : []
  return [...reasons.map(reason => ({ reason, clinicians })), ...members]
}

/** The members of each care team whom the rule is for. */
function explainMembers(rule: PolicyRule, teams: PatientFacts['teams']): Omit<PolicyMatch, 'rule'>[] {
  return teams.flatMap(({ id, members }) => {
    const clinicians = members.filter(member => isClinician(member) && isFor(rule, member))
    return clinicians.length === 0
      ? []
      : [{ reason: `members of CareTeam/${id}, which treats the patient`, clinicians }]
  })
}
