import { isRecord } from '../core/index.ts'
import { listRecords } from './rows.ts'
import type { FhirJson } from './tool.ts'

/** A page of a search. */
export interface ReadBundle {
  readonly resources: readonly FhirJson[]
  readonly total: number | undefined
  /** The URL of the next page. */
  readonly next: string | undefined
  /** What the server says about the search, such as that the result is not complete. */
  readonly notes: readonly string[]
}

export function readPage(bundle: FhirJson): ReadBundle {
  const entries = listRecords(bundle.entry)
  const find = (mode: string) =>
    entries
      .filter(({ search }) => (isRecord(search) ? search.mode : 'match') === mode)
      .map(it => it.resource)
      .filter(isRecord)
  const next = listRecords(bundle.link).find(it => it.relation === 'next')?.url
  return {
    resources: [...find('match'), ...find('include')],
    total: typeof bundle.total === 'number' ? bundle.total : undefined,
    next: typeof next === 'string' ? next : undefined,
    notes: find('outcome').flatMap(listTexts),
  }
}

/** The texts of an OperationOutcome. */
export function listTexts(outcome: FhirJson): readonly string[] {
  return listRecords(outcome.issue).flatMap(({ diagnostics, details }) => {
    const text = diagnostics ?? (isRecord(details) ? details.text : undefined)
    return typeof text === 'string' ? [text] : []
  })
}
