import { isRecord } from '../core/index.ts'
import type { Searchset } from '../fhir-api/index.ts'
import { MAX_NOTES, NOTE_CHARACTERS } from './limits.ts'
import { listRecords, shorten } from './rows.ts'
import type { FhirJson, ResultPage } from './tool.ts'

export function readSearchset({ matches, includes, outcomes, total, links }: Searchset): ResultPage {
  return {
    resources: [...matches, ...includes].map(it => it.parse()),
    total,
    next: links.find(it => it.relation === 'next')?.url,
    notes: outcomes.flatMap(listTexts).slice(0, MAX_NOTES),
  }
}

/** The page in a Bundle of another server. */
export function readBundle(bundle: FhirJson): ResultPage {
  const found = Object.groupBy(listRecords(bundle.entry), getMode)
  const find = (mode: 'match' | 'include' | 'outcome') =>
    (found[mode] ?? []).map(it => it.resource).filter(isRecord)
  const next = listRecords(bundle.link).find(it => it.relation === 'next')?.url
  return {
    resources: [...find('match'), ...find('include')],
    total: typeof bundle.total === 'number' ? bundle.total : undefined,
    next: typeof next === 'string' ? next : undefined,
    notes: find('outcome').flatMap(listTexts).slice(0, MAX_NOTES),
  }
}

function getMode({ search }: FhirJson): string {
  return isRecord(search) ? String(search.mode) : 'match'
}

/** The texts of an OperationOutcome. Another server may have written it. */
export function listTexts(outcome: { readonly issue?: unknown }): readonly string[] {
  return listRecords(outcome.issue)
    .slice(0, MAX_NOTES)
    .flatMap(({ diagnostics, details }) => {
      const text = diagnostics ?? (isRecord(details) ? details.text : undefined)
      return typeof text === 'string' ? [shorten(text, NOTE_CHARACTERS)] : []
    })
}
