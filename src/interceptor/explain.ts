import { isFailure } from '../core/index.ts'
import {
  failFor,
  type Interaction,
  isResourceType,
  type Misunderstood,
  parseInteraction,
} from '../fhir/index.ts'
import {
  type AccessFilter,
  type EnforcementPolicy,
  MAX_SCOPES,
  type Panel,
  type ScopeContext,
  suggestScope,
  suggestType,
} from '../smart/index.ts'
import { checkRequest } from './decision/check-request.ts'
import type { Decision } from './decision/decision.ts'
import { explainOtherPatients } from './decision/decision.ts'
import { refuse } from './refuse.ts'
import { readGrant } from './token/check-claims.ts'

const MAX_LISTED_PATIENTS = 5

/** Describes the patients that a request is limited to, unless it is one. An "if" marks what depends on stored data. */
function describePatients(filter: AccessFilter, interaction: Interaction | undefined): string | undefined {
  if (filter === 'everything' || filter.length === 0) return undefined
  if (!filter.every(constraint => constraint.patient !== undefined || constraint.panel)) return undefined
  const panels = filter.flatMap(({ panel }) => panel ?? [])
  const named = filter.flatMap(({ patient }) => patient ?? [])
  const patients = new Set([...named, ...panels.flatMap(panel => [...panel.patients])])
  const others = [...new Set(panels.flatMap(describeGroups))]
  const requested = interaction && findRequestedPatient(interaction)
  if (requested !== undefined)
    return patients.has(requested)
      ? `as Patient/${requested} is a patient of the user`
      : `if Patient/${requested} is ${joinWithOr(others)}`
  const all = [...listPatients(patients), ...others.map(group => `those ${group}`)]
  if (all.length === 0) return 'within no patient, as the policy gives the user none: it finds nothing'
  const isOfOne = interaction && 'id' in interaction
  return `${isOfOne ? 'if it is of one of' : 'within'} the patients of the user: ${joinWithOr(all)}`
}

function describeGroups({ organizations, careTeams, member }: Panel): readonly string[] {
  return [
    ...organizations.map(id => `of Organization/${id}`),
    ...careTeams.map(id => `of CareTeam/${id}`),
    ...(member ? [`of a care team with ${member.type}/${member.id}`] : []),
  ]
}

function findRequestedPatient(interaction: Interaction): string | undefined {
  if (interaction.kind === 'search-compartment') return interaction.id
  const isPatient = 'type' in interaction && interaction.type === 'Patient'
  return isPatient && 'id' in interaction ? interaction.id : undefined
}

function listPatients(patients: ReadonlySet<string>): readonly string[] {
  const names = [...patients].slice(0, MAX_LISTED_PATIENTS).map(id => `Patient/${id}`)
  return patients.size > MAX_LISTED_PATIENTS
    ? [...names, `${patients.size - MAX_LISTED_PATIENTS} more by id`]
    : names
}

function joinWithOr(items: readonly string[]): string {
  const last = items.at(-1) ?? ''
  return items.length > 1 ? `${items.slice(0, -1).join(', ')} or ${last}` : last
}

/** A request and a grant to check against each other, without a server, a token or data. */
export interface Question {
  readonly method: string
  /** Relative to the FHIR base. */
  readonly url: string
  readonly scope: string | readonly string[]
  readonly patient?: string | undefined
  readonly fhirUser?: string | undefined
  /** A JSON value, or a string for a form. For a PATCH an array is a JSON Patch and Parameters are a FHIRPath Patch. */
  readonly body?: unknown
  readonly searchPermission: 'r' | 's'
  readonly contexts: readonly ScopeContext[]
  /** The limits of users (`smart.fhir.policy-file`). */
  readonly userFilter?: EnforcementPolicy['userFilter'] | undefined
  /** The operations that the server offers. */
  readonly operations?: EnforcementPolicy['operations'] | undefined
}

/** A decision and its reason. If `allowed` is true, only stored data can still cause a refusal. */
export interface Explanation {
  readonly allowed: boolean
  readonly status: number
  /** The scope that permits the request, or `fhirUser` for the user's own resource. */
  readonly by: string | null
  /** The compartment that limits the request: `Patient/1`. */
  readonly within: string | null
  /** The filters that limit the request; one of them must match. */
  readonly limits: readonly string[]
  readonly text: string
  /** What would permit a refused request, or which patients a search names without effect. */
  readonly hint?: string | undefined
}

/** Explains what the interceptor would decide, and why. */
export function explain(question: Question, fhirBaseUrl: string): Explanation {
  const { scope, patient, fhirUser, contexts, searchPermission, userFilter, operations } = question
  const policy: EnforcementPolicy = {
    fhirBaseUrl,
    contexts,
    searchPermission,
    ...(userFilter && { userFilter }),
    ...(operations && { operations }),
  }
  try {
    const interaction = parseQuestion(question)
    if (isFailure(interaction))
      return addHint(describeDecision({ allowed: false, refusal: interaction }), suggestUrl(question))
    const body = typeof question.body === 'string' ? undefined : question.body
    const grant = readGrant({ scope, patient, fhirUser }, fhirBaseUrl)
    const explanation = describeDecision(checkRequest(interaction, body, grant, policy), interaction)
    if (!explanation.allowed) return addHint(explanation, suggestScopes(question))
    const hint = explanation.within && explainOtherPatients(interaction, explanation.within, fhirBaseUrl)
    return addHint(explanation, hint ?? undefined)
  } catch {
    return describeDecision({ allowed: false, refusal: failFor('broken') })
  }
}

function addHint(explanation: Explanation, hint: string | undefined): Explanation {
  return hint ? { ...explanation, hint: [hint, explanation.hint].filter(Boolean).join('. ') } : explanation
}

/** The probable URL, if its resource type is misspelt. */
function suggestUrl({ url }: Question): string | undefined {
  const [, type = ''] = /^\/?([A-Za-z]+)/.exec(url) ?? []
  const meant = isResourceType(type) ? undefined : suggestType(type)
  return meant && `The resource type is misspelt: write ${meant}`
}

/** The probable scopes, for those that permit nothing. */
function suggestScopes({ scope }: Question): string | undefined {
  const scopes = typeof scope === 'string' ? scope.split(' ') : scope
  const hints = scopes.slice(0, MAX_SCOPES).flatMap(text => {
    const meant = suggestScope(text)
    return meant === undefined ? [] : [`${text} permits nothing: write ${meant}`]
  })
  return hints.length > 0 ? hints.join('. ') : undefined
}

function parseQuestion({ method, url, body }: Question): Interaction | Misunderstood {
  const at = url.indexOf('?')
  const path = at < 0 ? url : url.slice(0, at)
  return parseInteraction({
    method,
    path: path.startsWith('/') ? path : `/${path}`,
    query: at < 0 ? '' : url.slice(at + 1),
    headers: path.endsWith('/_search') ? { 'content-type': 'application/x-www-form-urlencoded' } : {},
    form: typeof body === 'string' ? body : '',
  })
}

function describeDecision(decision: Decision, interaction?: Interaction): Explanation {
  if (!decision.allowed) {
    const { status, outcome, hint } = refuse(decision.refusal)
    const [issue] = outcome.issue
    const text = issue?.details.text ?? ''
    return { allowed: false, status, by: null, within: null, limits: [], text, hint }
  }
  const by =
    typeof decision.by === 'object' ? decision.by.text : decision.by === 'fhirUser' ? decision.by : null
  const within = findCompartment(decision.within)
  const limits = describeFilters(decision.within)
  const text = [
    describeReason(decision.by),
    within ? `within ${within}` : describePatients(decision.within, interaction),
    limits.length > 0 && `where ${limits.join(' or ')}`,
  ]
  return { allowed: true, status: 200, by, within, limits, text: `${text.filter(Boolean).join(', ')}.` }
}

function describeReason(by: Extract<Decision, { allowed: true }>['by']): string {
  if (by === 'public') return 'Allowed to all'
  if (by === 'entries') return 'Allowed by each of its entries'
  return by === 'fhirUser' ? "Allowed as the user's own resource" : `Allowed by ${by.text}`
}

function findCompartment(filter: AccessFilter): string | null {
  if (filter === 'everything') return null
  const [first, ...rest] = new Set(filter.map(constraint => constraint.patient))
  return first === undefined || rest.length > 0 ? null : `Patient/${first}`
}

// A filter matches if any of its constraints does, so a constraint without a query removes all queries.
function describeFilters(filter: AccessFilter): readonly string[] {
  if (filter === 'everything' || !filter.every(constraint => constraint.query || constraint.id !== undefined))
    return []
  return filter.map(({ query = [], id }) =>
    [...(id === undefined ? [] : [['_id', id]]), ...query].map(pair => pair.join('=')).join('&'),
  )
}
