import { DAY_MS, isFailure } from '../../../../core/index.ts'
import type { AdminFailure } from '../../base/action.ts'
import type { Filter } from '../../subject/list.ts'
import { readUrlFilters } from '../../subject/list-page.ts'
import { findMeantPatients, type MeantPatients } from '../../subject/page/find-patients.ts'
import type { AdminRequest } from '../../subject/page/route.ts'
import { PAGE_FILTERS, readTrailFilters, type WantedRecords } from '../filters.ts'

/** The records that the URL of a page asks for. */
export interface AuditView extends WantedRecords {
  /** The filters, by their names in the URL. */
  readonly fields: Readonly<Record<string, string>>
  readonly meant: MeantPatients | undefined
}

export async function readAuditView(request: AdminRequest): Promise<AuditView | AdminFailure> {
  const wanted = readUrlFilters(request, PAGE_FILTERS)
  if (isFailure(wanted)) return wanted
  const { patient } = wanted
  const meant =
    patient === undefined ? undefined : await findMeantPatients(request, 'audit-search', String(patient))
  // A day ends with its last millisecond.
  const read = await readTrailFilters(request.admin.store, wanted, { end: DAY_MS, patients: meant?.ids })
  if (isFailure(read)) return read
  const named = NAMES.map(([key, name]) => [name, String(wanted[key] ?? '')] as const)
  return { ...read, meant, fields: Object.fromEntries(named.filter(([, value]) => value !== '')) }
}

const NAMES = Object.entries<Filter>(PAGE_FILTERS).map(([key, { name = key }]) => [key, name] as const)

export function buildAuditQuery(fields: AuditView['fields'], after?: string): string {
  const set = NAMES.map(([, name]) => [name, fields[name] ?? '']).filter(([, value]) => value !== '')
  const query = new URLSearchParams(set)
  if (after !== undefined) query.set('after', after)
  return query.size === 0 ? '' : `?${query}`
}
