import { isFailure } from '../../../core/index.ts'
import {
  createMatcher,
  findCompartmentPatients,
  type Params,
  parseDateRange,
  type Resource,
  Work,
} from '../../../fhir/index.ts'
import type {
  ExportMoment,
  ExportRange,
  ExportRow,
  ExportSelection,
  ExportSource,
  Failure,
  FhirRequest,
  Search,
  SearchEntry,
  SearchPage,
} from '../../../fhir-api/index.ts'
import type { Access, AccessFilter } from '../../../smart/index.ts'
import { chunk } from '../chunk.ts'
import type { GatewayContext } from '../context.ts'
import { EXPORT_PAGE, EXPORT_PATIENTS_AT_ONCE } from '../limits.ts'
import { type PageCursor, parseCursor } from '../paging.ts'
import { CUT } from './continuation.ts'
import { performSearch } from './search.ts'

/** The gateway's context with an allowance of its own: a file takes many searches, each of which is limited like a request. */
type BindWork = (work: Work) => GatewayContext

/**
 * The rows of bulk exports, from the upstream's searches within the grant. The upstream has current versions only: a resource
 * that changes after the moment is missing, and is in the next export that begins at this one's time.
 */
export class UpstreamRows implements ExportSource {
  readonly knowsDeletions = false
  readonly #bind: BindWork
  readonly #request: FhirRequest
  readonly #clock: () => number
  readonly #baseUrl: string

  constructor(bind: BindWork, request: FhirRequest, { baseUrl, clock }: GatewayContext) {
    this.#bind = bind
    this.#request = request
    this.#clock = clock
    this.#baseUrl = baseUrl
  }

  async now(): Promise<ExportMoment> {
    return { time: this.#clock(), mark: 0 }
  }

  /** One range for each type that has matches: an upstream need not count them. */
  async divide(selection: ExportSelection, after: number): Promise<ExportRange | undefined | Failure> {
    const range = { from: 0, to: selection.moment.time }
    if (after >= range.to) return undefined
    for (const part of this.#listParts(selection)) {
      const page = await this.#search(part, selection, '1')
      if (isFailure(page)) return isUnknownType(page) ? undefined : page
      if (page.matches.length > 0 || page.cursors.has('next')) return range
    }
    return undefined
  }

  async *read(selection: ExportSelection): AsyncIterable<readonly ExportRow[] | Failure> {
    for (const part of this.#listParts(selection)) yield* this.#readPart(part, selection)
  }

  /**
   * Reads in the order of the last change, and each time from the last row: a resource that changes meanwhile leaves the
   * result, and by their number the next rows would move to the page before. Where the upstream does not sort, nothing may
   * have changed until the end.
   */
  async *#readPart(part: Part, selection: ExportSelection): AsyncIterable<readonly ExportRow[] | Failure> {
    let { since: from } = selection
    let shown = new Set<string>()
    let cursor: PageCursor | undefined
    let isByPosition = false
    for (;;) {
      const page = await this.#search(part, { ...selection, since: from }, EXPORT_PAGE, cursor)
      if (isFailure(page)) return yield page
      if (page.lacks) return yield CUT
      const rows = page.matches.map(toRow)
      yield rows.filter(row => !shown.has(row.id) && part.isFirst(row.parse()))
      const next = page.cursors.get('next')
      if (!next) break
      const last = findLastTime(rows)
      if (last !== undefined && last > (from ?? Number.NEGATIVE_INFINITY)) {
        // The rows of that time come again.
        shown = new Set(rows.filter(({ updated }) => updated === last).map(({ id }) => id))
        from = last
        cursor = undefined
      } else {
        for (const { id } of rows) shown.add(id)
        cursor = parseCursor(next)
        isByPosition = true
      }
    }
    if (isByPosition && !(await this.#isUnchanged(part, selection))) yield CUT
  }

  /** Whether no resource has changed since the moment, so that none has left the result while it was read. */
  async #isUnchanged(part: Part, selection: ExportSelection): Promise<boolean> {
    const { since: _, until: __, ...rest } = selection
    const later = await this.#ask(
      part,
      rest,
      [['_lastUpdated', `gt${formatTime(selection.moment.time)}`]],
      '1',
    )
    return !isFailure(later) && later.matches.length === 0 && !later.cursors.has('next')
  }

  #search(
    part: Part,
    selection: ExportSelection,
    count: string,
    cursor?: PageCursor,
  ): Promise<SearchPage | Failure> {
    const { moment, since, until } = selection
    const upper = until !== undefined && until <= moment.time ? `lt${formatTime(until)}` : undefined
    const times: Params = [
      ['_lastUpdated', upper ?? `le${formatTime(moment.time)}`],
      ...(since === undefined ? [] : [['_lastUpdated', `ge${formatTime(since)}`] as const]),
      ['_sort', '_lastUpdated'],
    ]
    return this.#ask(part, selection, times, count, cursor)
  }

  #ask(
    { access, params }: Part,
    { type }: ExportSelection,
    times: Params,
    count: string,
    cursor?: PageCursor,
  ): Promise<SearchPage | Failure> {
    const work = new Work()
    const request: FhirRequest<Search> = {
      ...this.#request,
      access,
      work,
      interaction: { kind: 'search-type', type, params: [...params, ...times, ['_count', count]] },
    }
    return performSearch(this.#bind(work), request, cursor)
  }

  /** The searches whose results make up the rows: for some patients at a time, and for each of the queries. */
  #listParts({ type, filters, patients }: ExportSelection): readonly Part[] {
    const { access } = this.#request
    const queries = filters.length === 0 ? [[]] : filters
    const groups = patients ? chunk(patients, EXPORT_PATIENTS_AT_ONCE) : [undefined]
    return groups.flatMap((few, at) => {
      const before = new Set(groups.slice(0, at).flatMap(it => it ?? []))
      return queries.map((params, index) => ({
        access: few ? limitToPatients(access, type, few) : access,
        params,
        isFirst: (resource: Resource) =>
          !this.#matchesSome(resource, queries.slice(0, index)) && !this.#isOf(resource, before),
      }))
    })
  }

  #matchesSome(resource: Resource, queries: readonly Params[]): boolean {
    if (queries.length === 0) return false
    const matches = createMatcher(resource, this.#baseUrl)
    return queries.some(params => params.every(pair => matches(pair) === true))
  }

  #isOf(resource: Resource, patients: ReadonlySet<string>): boolean {
    return (
      patients.size > 0 && findCompartmentPatients(resource, this.#baseUrl).intersection(patients).size > 0
    )
  }
}

interface Part {
  readonly access: Access
  readonly params: Params
  /** Whether no earlier part has the resource. */
  isFirst(resource: Resource): boolean
}

interface TimedRow extends ExportRow {
  readonly updated: number | undefined
}

function toRow(entry: SearchEntry): TimedRow {
  const resource = entry.parse()
  const { lastUpdated } = resource.meta ?? {}
  const updated = typeof lastUpdated === 'string' ? parseDateRange(lastUpdated)?.low : undefined
  return { type: entry.type, id: entry.id, text: entry.text, parse: () => resource, updated }
}

/** So many rows are not in the right order by chance. */
const SURE = 5

/** The time of the last row, if the upstream has sorted them. */
function findLastTime(rows: readonly TimedRow[]): number | undefined {
  if (rows.length < SURE) return undefined
  let last = Number.NEGATIVE_INFINITY
  for (const { updated } of rows) {
    if (updated === undefined || updated < last) return undefined
    last = updated
  }
  return last
}

function formatTime(time: number): string {
  return new Date(time).toISOString()
}

/** The access to the resources of a type that are also of one of the patients. */
function limitToPatients(access: Access, type: string, patients: readonly string[]): Access {
  const limit = (filter: AccessFilter): AccessFilter =>
    patients.flatMap(patient =>
      filter === 'everything' ? [{ patient }] : filter.map(constraint => ({ ...constraint, patient })),
    )
  return {
    filterFor: (of, permission) =>
      of === type ? limit(access.filterFor(of, permission)) : access.filterFor(of, permission),
  }
}

function isUnknownType(failure: Failure): boolean {
  return failure.reason === 'upstream-declined' && (failure.status === 404 || failure.status === 501)
}
