import { outcome } from '../fhir/index.ts'
import { renderErrorPage } from './error-page.ts'
import { createPagePolicy } from './headers.ts'
import { type Problem, splitWords } from './problems.ts'

/** In which form an address answers with an error: a page, an OperationOutcome (FHIR or `/api`), or OAuth's JSON. */
export type ErrorStyle = 'page' | 'fhir' | 'api' | 'oauth'

export interface Answer {
  readonly status: number
  readonly type: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Occasion {
  /** The request id, shown as the reference. */
  readonly reference: string
  readonly now: number
  /** Where the page's button leads. */
  readonly home: string
}

/** The one place where a problem becomes a response. */
export function answerTo(problem: Problem, style: ErrorStyle, occasion: Occasion): Answer {
  const { status } = splitWords(problem)
  const headers = readHeaders(problem)
  switch (style) {
    case 'page':
      return {
        status,
        headers: { ...headers, 'content-security-policy': createPagePolicy() },
        type: 'text/html; charset=utf-8',
        body: renderProblemPage(problem, occasion),
      }
    case 'fhir':
      return { status, headers, type: 'application/fhir+json; charset=utf-8', body: formatOutcome(problem) }
    case 'api':
      return { status, headers, type: 'application/json; charset=utf-8', body: formatOutcome(problem) }
    case 'oauth':
      return { status, headers, type: 'application/json; charset=utf-8', body: formatOAuthText(problem) }
  }
}

function readHeaders(problem: Problem): Readonly<Record<string, string>> {
  if (problem.kind === 'method-not-allowed') return { allow: problem.allow.join(', ') }
  if (problem.kind === 'unavailable') return { 'retry-after': '2' }
  return {}
}

function formatOutcome(problem: Problem): string {
  const { issue, text } = splitWords(problem)
  return JSON.stringify(outcome(issue, text))
}

function formatOAuthText(problem: Problem): string {
  const { oauth, text } = splitWords(problem)
  return JSON.stringify({ error: oauth, error_description: text })
}

/** What is not there is not shut: a dashed door, not a red one. */
const AWAY: ReadonlySet<Problem['kind']> = new Set(['not-found', 'unavailable', 'unexpected'])

function renderProblemPage(problem: Problem, { reference, now, home }: Occasion): string {
  const { title, text, status } = splitWords(problem)
  return renderErrorPage({
    kind: AWAY.has(problem.kind) ? 'away' : 'refused',
    title,
    text: [text],
    code: String(status),
    reference,
    now,
    actions: [{ href: home, text: 'Go to the first page' }],
  }).markup
}
