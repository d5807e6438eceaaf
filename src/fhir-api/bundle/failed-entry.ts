import { outcome } from '../../fhir/index.ts'
import { toProblem } from '../../web/index.ts'

/** The response of an entry that failed by an error, where other entries have responses of their own. */
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
