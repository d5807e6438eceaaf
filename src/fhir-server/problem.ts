import { type Fault, type OperationOutcome, outcome, type Refused } from '../fhir/index.ts'
import type { Answer } from './answer.ts'

/** Why an interaction is not done. None of these is a bug: each has a response. */
export type Problem =
  | { readonly problem: 'misunderstood'; readonly status: 400 | 404 | 405 | 415; readonly text: string }
  | { readonly problem: 'refused'; readonly refused: Refused }
  | { readonly problem: 'out-of-reach' }
  | { readonly problem: 'absent'; readonly type: string; readonly id: string }
  | { readonly problem: 'gone'; readonly type: string; readonly id: string }
  | { readonly problem: 'malformed-body'; readonly text: string }
  | { readonly problem: 'body-too-large'; readonly limit: number }
  | { readonly problem: 'wrong-content-type'; readonly expected: string }
  | { readonly problem: 'not-acceptable' }
  | { readonly problem: 'invalid-resource'; readonly faults: readonly Fault[] }
  | { readonly problem: 'contradiction'; readonly text: string }
  | { readonly problem: 'unusable-patch'; readonly text: string }
  | { readonly problem: 'stale'; readonly text: string }
  | { readonly problem: 'multiple-matches'; readonly type: string }
  | { readonly problem: 'no-match'; readonly type: string }
  | { readonly problem: 'bad-search'; readonly code: 'invalid' | 'not-supported'; readonly text: string }
  | { readonly problem: 'too-costly'; readonly text: string }
  | { readonly problem: 'bad-bundle'; readonly text: string; readonly entry?: number }
  | { readonly problem: 'entry-failed'; readonly entry: number; readonly cause: Problem }
  | { readonly problem: 'not-supported'; readonly text: string }

export function isProblem(value: object): value is Problem {
  return 'problem' in value
}

/** The one place where a problem becomes a response. */
export function answerOf(problem: Problem): Answer {
  switch (problem.problem) {
    case 'misunderstood':
      return refusal(problem.status, outcome(codeOf(problem.status), problem.text))
    case 'refused': {
      const { status, headers, outcome: said } = problem.refused
      return { ...refusal(status, said), headers }
    }
    case 'out-of-reach':
      // Contract 4, "other refusals".
      return refusal(403, outcome('forbidden', 'Not within the granted patient, user or filter.'))
    case 'absent':
      return refusal(404, outcome('not-found', `Cannot find ${problem.type}/${problem.id}`))
    case 'gone':
      return refusal(
        410,
        outcome('deleted', `Cannot read ${problem.type}/${problem.id}: it has been deleted`),
      )
    case 'malformed-body':
      return refusal(400, outcome('structure', problem.text))
    case 'body-too-large':
      return refusal(413, outcome('too-long', `Cannot read body: it is over ${problem.limit} bytes`))
    case 'wrong-content-type':
      return refusal(415, outcome('not-supported', `Cannot read body: expected ${problem.expected}`))
    case 'not-acceptable':
      return refusal(406, outcome('not-supported', 'Cannot answer in this format: only JSON is spoken here'))
    case 'invalid-resource':
      return refusal(422, faultsOutcome(problem.faults))
    case 'contradiction':
      return refusal(400, outcome('invalid', problem.text))
    case 'unusable-patch':
      return refusal(422, outcome('processing', problem.text))
    case 'stale':
      return refusal(412, outcome('conflict', problem.text))
    case 'multiple-matches':
      return refusal(
        412,
        outcome('multiple-matches', `Cannot choose a ${problem.type}: several match the search parameters`),
      )
    case 'no-match':
      return refusal(
        404,
        outcome('not-found', `Cannot find a ${problem.type} that matches the search parameters`),
      )
    case 'bad-search':
      return refusal(400, outcome(problem.code, problem.text))
    case 'too-costly':
      return refusal(400, outcome('too-costly', problem.text))
    case 'bad-bundle':
      return refusal(400, outcome('structure', problem.text, atEntry(problem.entry)))
    case 'entry-failed':
      return entryFailed(problem.entry, answerOf(problem.cause))
    case 'not-supported':
      return refusal(501, outcome('not-supported', problem.text))
  }
}

function refusal(status: number, said: OperationOutcome): Answer {
  return { status, body: JSON.stringify(said) }
}

function codeOf(status: 400 | 404 | 405 | 415): 'invalid' | 'not-found' | 'not-supported' {
  return status === 404 ? 'not-found' : status === 400 ? 'invalid' : 'not-supported'
}

function faultsOutcome(faults: readonly Fault[]): OperationOutcome {
  return {
    resourceType: 'OperationOutcome',
    issue: faults.map(({ code, text, path }) => ({
      severity: 'error',
      code,
      details: { text },
      expression: [path],
    })),
  }
}

/** What failed in a transaction fails it whole, with the answer of the entry and its place. */
function entryFailed(entry: number, answer: Answer): Answer {
  const said = JSON.parse(answer.body ?? '{"issue":[]}') as OperationOutcome
  const at = `Bundle.entry[${entry}]`
  const issue = said.issue.map(it => ({
    ...it,
    diagnostics: it.diagnostics ?? at,
    expression: it.expression ?? [at],
  }))
  return { ...answer, body: JSON.stringify({ ...said, issue }) }
}

function atEntry(entry: number | undefined): { readonly expression?: readonly string[] } {
  return entry === undefined ? {} : { expression: [`Bundle.entry[${entry}]`] }
}
