import { type Interaction, type Misunderstood, parseInteraction } from '../fhir/index.ts'
import type { AccessFilter, EnforcementPolicy, ScopeContext } from '../smart/index.ts'
import type { Decision } from './decision/decision.ts'
import { strangerHint } from './decision/hint.ts'
import { judgeRequest } from './decision/judge-request.ts'
import { patientsIn } from './explain-rights.ts'
import { refuse } from './refuse.ts'
import { grantOf } from './token/grant-of.ts'

/** A request and a grant to be tried against each other, without server, token or data. */
export interface Question {
  readonly method: string
  /** Below the FHIR base. */
  readonly url: string
  readonly scope: string | readonly string[]
  readonly patient?: string | undefined
  readonly fhirUser?: string | undefined
  /** A JSON value; a text is a form. Of a PATCH an array is a JSON Patch, Parameters a FHIRPath Patch. */
  readonly body?: unknown
  readonly searchPermission: 'r' | 's'
  readonly contexts: readonly ScopeContext[]
  /** The rights of users, where they are limited (`smart.fhir.policy-file`). */
  readonly userFilter?: EnforcementPolicy['userFilter'] | undefined
  /** The operations that the server offers. */
  readonly operations?: EnforcementPolicy['operations'] | undefined
}

/** The decision in words. `allowed` is true when only data can still refuse. */
export interface Explanation {
  readonly allowed: boolean
  readonly status: number
  /** The scope that decided, or `fhirUser` for the user's own resource. */
  readonly by: string | null
  /** The compartment that the request is kept to: `Patient/1`. */
  readonly within: string | null
  /** The filters that the request is kept to, any of them. */
  readonly limits: readonly string[]
  readonly text: string
  /** Of a refusal: what would have permitted it. Of a search: that it names somebody in vain. */
  readonly hint?: string | undefined
}

/** What the interceptor would decide, and why. */
export function explain(question: Question, fhirBaseUrl: string): Explanation {
  const { scope, patient, fhirUser, contexts, searchPermission, userFilter, operations } = question
  const policy: EnforcementPolicy = {
    ...{ fhirBaseUrl, contexts, searchPermission },
    ...(userFilter && { userFilter: userFilter }),
    ...(operations && { operations }),
  }
  try {
    const interaction = interactionOf(question)
    if (interaction.kind === 'misunderstood') return explanationOf({ allowed: false, refusal: interaction })
    const body = typeof question.body === 'string' ? undefined : question.body
    const grant = grantOf({ scope, patient, fhirUser }, fhirBaseUrl)
    const explanation = explanationOf(judgeRequest(interaction, body, grant, policy), interaction)
    const hint = explanation.within && strangerHint(interaction, explanation.within, fhirBaseUrl)
    return hint ? { ...explanation, hint } : explanation
  } catch {
    return explanationOf({ allowed: false, refusal: { kind: 'broken' } })
  }
}

function interactionOf({ method, url, body }: Question): Interaction | Misunderstood {
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

function explanationOf(decision: Decision, interaction?: Interaction): Explanation {
  if (!decision.allowed) {
    const { status, outcome, hint } = refuse(decision.refusal)
    const [issue] = outcome.issue
    const text = issue?.details.text ?? ''
    return { allowed: false, status, by: null, within: null, limits: [], text, hint }
  }
  const by =
    typeof decision.by === 'object' ? decision.by.text : decision.by === 'fhirUser' ? decision.by : null
  const within = compartmentOf(decision.within)
  const limits = filtersOf(decision.within)
  const text = [
    reasonOf(decision.by),
    within ? `within ${within}` : patientsIn(decision.within, interaction),
    limits.length > 0 && `where ${limits.join(' or ')}`,
  ]
  return { allowed: true, status: 200, by, within, limits, text: `${text.filter(Boolean).join(', ')}.` }
}

function reasonOf(by: Extract<Decision, { allowed: true }>['by']): string {
  if (by === 'public') return 'Allowed to all'
  if (by === 'entries') return 'Allowed by each of its entries'
  return by === 'fhirUser' ? 'Allowed as the own resource of the user' : `Allowed by ${by.text}`
}

function compartmentOf(filter: AccessFilter): string | null {
  if (filter === 'everything') return null
  const [first, ...rest] = new Set(filter.map(limit => limit.patient))
  return first === undefined || rest.length > 0 ? null : `Patient/${first}`
}

// A reach is any of its limits: one without a filter leaves no filter.
function filtersOf(filter: AccessFilter): readonly string[] {
  if (filter === 'everything' || !filter.every(limit => limit.query || limit.id !== undefined)) return []
  return filter.map(({ query = [], id }) =>
    [...(id === undefined ? [] : [['_id', id]]), ...query].map(pair => pair.join('=')).join('&'),
  )
}
