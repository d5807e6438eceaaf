import { findNamedBinaries, type Resource } from '../fhir/index.ts'
import type { Access, Constraint } from './access-filter.ts'
import type { PanelMembership } from './policy/panel.ts'
import { satisfies } from './satisfies.ts'

/**
 * Whether a DocumentReference lets the caller read a Binary that does not say whose it is: it names the Binary, is
 * within what the caller may read, and is of a patient whose Binaries the caller may read. Each server checks besides that
 * it was written after the Binary: an id that was named while something else was stored under it conveys nothing
 * (docs/decisions/0173-binaries.md).
 */
export function grantsBinary(
  document: Resource,
  id: string,
  access: Access,
  baseUrl: string,
  membership?: PanelMembership,
): boolean {
  const filter = access.filterFor('Binary', 'r')
  const patients = filter === 'everything' ? filter : filter.filter(isToPatients)
  return (
    findNamedBinaries(document, baseUrl).has(id) &&
    satisfies(document, access.filterFor('DocumentReference', 'r'), baseUrl, membership) &&
    satisfies(document, patients, baseUrl, membership)
  )
}

/** Whether a limit is to patients and nothing else: a filter on Binaries cannot be applied to a DocumentReference. */
function isToPatients({ patient, panel, ...more }: Constraint): boolean {
  return (patient !== undefined || panel !== undefined) && Object.keys(more).length === 0
}
