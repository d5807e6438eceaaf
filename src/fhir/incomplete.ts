import { isRecord } from '../core/index.ts'

// R4 valueset-issue-type.html: reasons for which a server ends a search early.
const CODES: ReadonlySet<unknown> = new Set([
  'incomplete',
  'too-costly',
  'timeout',
  'throttled',
  'transient',
  'exception',
])

/** Whether a searchset says in an OperationOutcome that results are missing (R4 search.html#outcome). */
export function saysIncomplete(bundle: unknown): boolean {
  const entries: readonly unknown[] = isRecord(bundle) && Array.isArray(bundle.entry) ? bundle.entry : []
  return entries.some(
    entry =>
      isRecord(entry) &&
      isRecord(entry.search) &&
      entry.search.mode === 'outcome' &&
      namesMissingResults(entry.resource),
  )
}

/** Whether an OperationOutcome of a searchset says that results are missing. */
export function namesMissingResults(outcome: unknown): boolean {
  const issues: readonly unknown[] =
    isRecord(outcome) && outcome.resourceType === 'OperationOutcome' && Array.isArray(outcome.issue)
      ? outcome.issue
      : []
  return issues.some(issue => isRecord(issue) && CODES.has(issue.code))
}
