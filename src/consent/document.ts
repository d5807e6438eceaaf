import { binariesNamed, type Resource } from '../fhir/index.ts'
import { isWithin } from './is-within.ts'
import type { Access, Limit } from './reach.ts'
import type { Roster } from './rights/panel.ts'

/**
 * Whether a DocumentReference lets the caller read a Binary that does not say whose it is: it names the Binary, is
 * within what the caller may read, and is of a patient whose Binaries the caller may read. Each server checks besides that
 * it was written after the Binary: an id that was named while something else was stored under it conveys nothing
 * (docs/decisions/0173-binaries-of-documents.md).
 */
export function conveys(
  document: Resource,
  id: string,
  access: Access,
  baseUrl: string,
  roster?: Roster,
): boolean {
  const reach = access.reach('Binary', 'r')
  const patients = reach === 'everything' ? reach : reach.filter(isToPatients)
  return (
    binariesNamed(document, baseUrl).has(id) &&
    isWithin(document, access.reach('DocumentReference', 'r'), baseUrl, roster) &&
    isWithin(document, patients, baseUrl, roster)
  )
}

/** Whether a limit is to patients and nothing else: a filter on Binaries cannot be applied to a DocumentReference. */
function isToPatients({ patient, panel, ...more }: Limit): boolean {
  return (patient !== undefined || panel !== undefined) && Object.keys(more).length === 0
}
