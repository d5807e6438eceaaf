import { outcome } from '../../fhir/index.ts'
import { toProblem } from '../../web/index.ts'

/** What an entry of a batch answers that failed by an error, where other entries are answered for themselves. */
export function describeFailedEntry(error: unknown): { readonly status: number; readonly body: string } {
  return toProblem(error).kind === 'unavailable' ? UNAVAILABLE : UNEXPECTED
}

const UNAVAILABLE = {
  status: 503,
  body: JSON.stringify(
    outcome('transient', 'Cannot process entry: the database is unavailable. Send this entry again later'),
  ),
}

const UNEXPECTED = {
  status: 500,
  body: JSON.stringify(outcome('exception', 'Cannot process entry: an internal error occurred')),
}
