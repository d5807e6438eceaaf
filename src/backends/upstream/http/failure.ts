import {
  createOutcome,
  fail,
  findJsonExcess,
  type IssueCode,
  isRecord,
  type OperationOutcome,
  type OutcomeIssue,
} from '../../../fhir/index.ts'
import { seesAll } from '../../../fhir-api/index.ts'
import type { Access } from '../../../smart/index.ts'
import type { Problem } from '../problem.ts'
import type { UpstreamResponse } from './client.ts'

/** What an answer other than a success means to the caller. */
export function toFailure(answer: UpstreamResponse, access: Access): Problem {
  const { status } = answer
  if (status < 400) return fail({ problem: 'upstream-broken', why: `it answered ${status}` })
  if (status === 401 || status === 403 || status === 407)
    return fail({ problem: 'upstream-broken', why: 'it does not accept the credentials of the gateway' })
  if (status === 503) return fail({ problem: 'upstream-unreachable' })
  if (status === 504) return fail({ problem: 'upstream-late' })
  if (status >= 500 && status !== 501)
    return fail({ problem: 'upstream-broken', why: `it answered ${status}` })
  const retryAfter = answer.headers['retry-after']
  return fail({
    problem: 'upstream-declined',
    status,
    outcome: saidBy(answer, access),
    ...(retryAfter !== undefined && { retryAfter }),
    ...(status === 405 && { allow: allowedBy(answer) }),
  })
}

/** RFC 9110, 15.5.6: a 405 has `Allow`, and an empty one says of no method that it is allowed. */
function allowedBy({ headers }: UpstreamResponse): string {
  const { allow } = headers
  return typeof allow === 'string' && /^[A-Z]+(?:, ?[A-Z]+)*$/.test(allow) ? allow : ''
}

/**
 * What the upstream says is free text, which cannot be judged: it may name whom the caller must not know (a duplicate's
 * identifier, what still refers to a deleted resource). To a limited caller only its codes and places are passed on.
 */
function saidBy({ status, text }: UpstreamResponse, access: Access): OperationOutcome {
  const issues = issuesIn(text)
  if (issues.length === 0) return createOutcome(CODES[status] ?? 'processing', TEXTS[status] ?? DECLINED)
  return {
    resourceType: 'OperationOutcome',
    issue: issues.map(issue =>
      seesAll(access) ? withDiagnostics(issue, status) : withoutText(issue, status),
    ),
  }
}

function issuesIn(text: string): readonly Readonly<Record<string, unknown>>[] {
  try {
    const body: unknown = findJsonExcess(text) ? undefined : JSON.parse(text)
    return isRecord(body) && Array.isArray(body.issue) ? body.issue.filter(isRecord) : []
  } catch {
    return []
  }
}

/** As the upstream says it; the reason also where clients look for it. */
function withDiagnostics(issue: Readonly<Record<string, unknown>>, status: number): OutcomeIssue {
  const { details, diagnostics } = issue
  const text = isRecord(details) && typeof details.text === 'string' ? details.text : TEXTS[status]
  const said = typeof diagnostics === 'string' ? diagnostics : (text ?? DECLINED)
  return { ...(issue as unknown as OutcomeIssue), diagnostics: said }
}

// R4 OperationOutcome.issue.expression: a path in the content that the caller itself sent.
const PLACE = /^[A-Z][A-Za-z]*(?:\.[A-Za-z]+(?:\[\d{1,4}\])?){0,12}$/

function withoutText(
  { severity, code, expression }: Readonly<Record<string, unknown>>,
  status: number,
): OutcomeIssue {
  const places = Array.isArray(expression)
    ? expression.filter(it => typeof it === 'string' && PLACE.test(it))
    : []
  return {
    severity: SEVERITIES.find(it => it === severity) ?? 'error',
    code: KNOWN_CODES.find(it => it === code) ?? CODES[status] ?? 'processing',
    details: { text: TEXTS[status] ?? DECLINED },
    diagnostics: TEXTS[status] ?? DECLINED,
    ...(places.length > 0 && { expression: places as string[] }),
  }
}

const SEVERITIES = ['fatal', 'error', 'warning', 'information'] as const
const KNOWN_CODES = [
  'invalid',
  'structure',
  'required',
  'value',
  'invariant',
  'not-supported',
  'not-found',
  'deleted',
  'conflict',
  'duplicate',
  'multiple-matches',
  'too-long',
  'too-costly',
  'code-invalid',
  'processing',
] as const satisfies readonly IssueCode[]

const DECLINED = 'The FHIR server would not do this.'
const TEXTS: Readonly<Record<number, string>> = {
  400: 'The FHIR server could not read this request.',
  404: 'The FHIR server does not know this.',
  405: 'The FHIR server does not do this.',
  409: 'The FHIR server found a conflict with what it holds.',
  412: 'A condition of this request does not hold on the FHIR server.',
  413: 'This is too large for the FHIR server.',
  415: 'The FHIR server does not read this kind of content.',
  422: 'The FHIR server does not accept this content.',
  429: 'The FHIR server is asked too often. Try again soon.',
  501: 'The FHIR server does not do this.',
}
const CODES: Readonly<Record<number, IssueCode>> = {
  404: 'not-found',
  405: 'not-supported',
  409: 'conflict',
  410: 'deleted',
  412: 'conflict',
  413: 'too-long',
  415: 'not-supported',
  429: 'transient',
  501: 'not-supported',
}
