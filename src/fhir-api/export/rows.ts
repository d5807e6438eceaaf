import { isFailure, remember } from '../../core/index.ts'
import {
  createMatcher,
  findContentPatients,
  parseDateRange,
  parseReference,
  type Resource,
  Work,
} from '../../fhir/index.ts'
import { type Access, hasCompartment } from '../../smart/index.ts'
import { listReferenceTexts } from '../access/check-references.ts'
import { checkStored } from '../access/find-resource.ts'
import type { BackendSession, ExportRow, ExportSelection } from '../backend.ts'
import type { Context } from '../context.ts'
import type { ExportFile, ExportOrder } from '../exports.ts'
import type { FhirRequest } from '../request.ts'
import type { Failure } from '../response.ts'

/** What the check of rows needs. */
export interface RowContext extends Pick<Context, 'baseUrl' | 'excludedTypes'> {
  readonly session: Pick<BackendSession, 'read' | 'panelMembers'>
}

type Part = Pick<ExportFile, 'type' | 'kind'>

/** The rows that the backend reads for a part of an export. */
export function selectRows(order: ExportOrder, { type, kind }: Part): ExportSelection {
  const { moment, since, until, patients } = order
  return {
    type,
    moment,
    isDeleted: kind === 'deleted',
    filters: listFilters(order, type),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
    ...(patients && isOfPatients(type) && { patients }),
  }
}

function listFilters({ filters }: ExportOrder, type: string) {
  return filters.filter(it => it.type === type).map(({ params }) => params)
}

/** A Provenance belongs to the patients of its targets. */
function isOfPatients(type: string): boolean {
  return hasCompartment(type) && type !== 'Provenance'
}

/** Whether every row of a part is exported, so that their number is known. */
export function isPlain(access: Access, order: ExportOrder, { type }: Part): boolean {
  return (
    !order.isByPatient &&
    isWhole(access, type) &&
    listFilters(order, type).length === 0 &&
    (order.level === 'system' || !hasCompartment(type)) &&
    !isOfTargets(order, type)
  )
}

/** Whether the caller may see all resources of a type. */
export function isWhole(access: Access, type: string): boolean {
  return access.filterFor(type, 'r') === 'everything' && access.filterFor(type, 's') === 'everything'
}

function isOfTargets({ level, isProvenanceAdded, provenance }: ExportOrder, type: string): boolean {
  const isLimited = level !== 'system' || isProvenanceAdded === true || provenance === 'latest'
  return type === 'Provenance' && isLimited
}

/** Whether a resource that a Provenance is about is exported too. Unless the client says which it wants, its patient decides. */
function isTarget({ types, provenance }: ExportOrder, type: string): boolean {
  return type !== 'Provenance' && (provenance ? types.includes(type) : isOfPatients(type))
}

export type CheckRows = (rows: readonly ExportRow[]) => Promise<readonly ExportRow[] | Failure>

/** Whether a Provenance is the latest about a resource, if only those are wanted. */
type IsLatest = (
  provenance: Resource,
  of: { readonly type: string; readonly id: string },
) => Promise<boolean | Failure>

/**
 * Returns the check of the rows of a part: those that the token of this request may read and search, and that the export
 * selects.
 */
export function createRowCheck(
  context: Context,
  request: FhirRequest,
  order: ExportOrder,
  part: Part,
): CheckRows {
  return createPartCheck(context, request, order, part, async ({ recorded }, { type, id }) => {
    if (order.provenance !== 'latest') return true
    const params = [
      ['target', `${type}/${id}`],
      ['_lastUpdated', `le${new Date(order.moment.time).toISOString()}`],
      ['_sort', '-recorded'],
      ['_count', '1'],
    ] as const
    const interaction = { kind: 'search-type', type: 'Provenance', params } as const
    const page = await context.session.search({ ...request, interaction, work: new Work() })
    if (isFailure(page)) return page
    const latest = page.matches[0]?.parse().recorded
    return findTime(recorded) >= findTime(latest)
  })
}

export function createPartCheck(
  context: RowContext,
  request: Pick<FhirRequest, 'access' | 'work'>,
  order: ExportOrder,
  part: Part,
  isLatest: IsLatest,
): CheckRows {
  const { baseUrl } = context
  const { access, work } = request
  const { type } = part
  const patients = order.patients && findSet(order.patients)
  const filters = listFilters(order, type)
  const needsPatient = order.level !== 'system' && isOfPatients(type)

  function isOfSelected(row: ExportRow): boolean {
    const found = listPatients(row, baseUrl)
    if (!patients) return found.length > 0
    return (
      found.some(id => patients.has(id)) && (!order.isOnlyPatients || found.every(id => patients.has(id)))
    )
  }

  function matchesFilters(resource: Resource): boolean {
    if (filters.length === 0) return true
    const matches = createMatcher(resource, baseUrl)
    return filters.some(params => params.every(pair => matches(pair) === true))
  }

  async function hasExportedTarget(resource: Resource): Promise<boolean | Failure> {
    for (const text of listReferenceTexts(resource.target)) {
      await work.pause()
      const target = parseReference(text, baseUrl)
      if (!target || !isTarget(order, target.type)) continue
      const stored = await context.session.read(target.type, target.id)
      if (isFailure(stored)) return stored
      if (!stored || stored.deleted || stored.text === undefined) continue
      const row = createTargetRow(stored, stored.text)
      if (isFailure(row)) return row
      const found = await createPartCheck(
        context,
        request,
        order,
        { type: row.type, kind: 'output' },
        isLatest,
      )([row])
      if (isFailure(found)) return found
      const isWanted = found.length > 0 && (await isLatest(resource, target))
      if (isWanted !== false) return isWanted
    }
    return false
  }

  return async rows => {
    const selected = needsPatient ? rows.filter(isOfSelected) : rows
    if (filters.length === 0 && isWhole(access, type) && !isOfTargets(order, type)) return selected
    const parsed: { readonly row: ExportRow; readonly resource: Resource }[] = []
    for (const row of selected) {
      const resource = row.parse()
      if (matchesFilters(resource)) parsed.push({ row, resource })
      await work.pause()
    }
    const resources = parsed.map(({ resource }) => resource)
    const check = isWhole(access, type) ? undefined : await checkStored(context, request, resources)
    if (isFailure(check)) return check
    const kept: ExportRow[] = []
    for (const { row, resource } of parsed) {
      await work.pause()
      if (check && !(check.allows('r', resource) && check.allows('s', resource))) continue
      const isWanted = isOfTargets(order, type) ? await hasExportedTarget(resource) : true
      if (isFailure(isWanted)) return isWanted
      if (isWanted) kept.push(row)
    }
    return kept
  }
}

const sets = new WeakMap<readonly string[], ReadonlySet<string>>()

/** A Group may have thousands of patients. */
function findSet(ids: readonly string[]): ReadonlySet<string> {
  return remember(sets, ids, () => new Set(ids))
}

/** The patients that a row is about. */
export function listPatients(row: ExportRow, baseUrl: string): readonly string[] {
  return row.findPatients?.() ?? [...findContentPatients(row.parse(), baseUrl)]
}

function createTargetRow(
  stored: { readonly type: string; readonly id: string; parse(): Resource | Failure },
  text: string,
): ExportRow | Failure {
  const resource = stored.parse()
  return isFailure(resource) ? resource : { type: stored.type, id: stored.id, text, parse: () => resource }
}

function findTime(instant: unknown): number {
  const time = typeof instant === 'string' ? parseDateRange(instant)?.low : undefined
  return time ?? Number.NEGATIVE_INFINITY
}
