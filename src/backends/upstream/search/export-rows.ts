import { isFailure } from '../../../core/index.ts'
import {
  createMatcher,
  findCompartmentPatients,
  isExcess,
  type Params,
  parseDateRange,
  type Resource,
  Work,
} from '../../../fhir/index.ts'
import {
  type ExportMoment,
  type ExportRange,
  type ExportRow,
  type ExportSelection,
  type ExportSource,
  type Failure,
  type FhirRequest,
  type HistoryPage,
  type Search,
  type SearchEntry,
  type SearchPage,
  toLine,
} from '../../../fhir-api/index.ts'
import type { Access, AccessFilter } from '../../../smart/index.ts'
import { chunk } from '../chunk.ts'
import type { GatewayContext } from '../context.ts'
import { buildGet } from '../http/build-request.ts'
import { EXPORT_COUNTED, EXPORT_PAGE, EXPORT_PATIENTS_AT_ONCE, EXPORT_VERSIONS } from '../limits.ts'
import { type PageCursor, parseCursor } from '../paging.ts'
import { readLast, readVersion } from '../read/read-version.ts'
import { visitMatches } from './chains.ts'
import { isUnknownType } from './compose.ts'
import { CUT } from './continuation.ts'
import { countUpstream } from './count.ts'
import { findHistory } from './find-history.ts'
import { performSearch } from './search.ts'

/** The gateway's context with an allowance of its own: a file takes many searches, each of which is limited like a request. */
type BindWork = (work: Work) => GatewayContext

/**
 * The rows of bulk exports, from the upstream's searches within the grant. The upstream has current versions only: a resource
 * that changes after the moment is missing, and is in the next export that begins at this one's time. The positions of ranges
 * are times of the last change: a range never gets further rows.
 */
export class UpstreamRows implements ExportSource {
  readonly isStable = false
  readonly isWithinAccess = true
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

  async knowsDeletions(type: string, since: number): Promise<boolean> {
    const { upstream } = this.#bind(new Work())
    const path = `/${type}/_history?_count=1&_since=${formatTime(since)}`
    const response = await upstream.ask(buildGet(this.#request, path))
    return !isFailure(response) && response.status === 200
  }

  async divide(
    selection: ExportSelection,
    after: number,
    limit: number,
  ): Promise<ExportRange | undefined | Failure> {
    const end = findEnd(selection)
    if (after >= end) return undefined
    if (selection.isDeleted) return this.#divideDeletions(selection)
    const first = await this.#findFirst(selection, { from: after, to: end })
    if (first === undefined || isFailure(first)) return first
    const most = this.#isCounted(selection) ? limit : Math.min(limit, EXPORT_COUNTED)
    for (let to = end; ; ) {
      const range = { from: after, to }
      const rows = await this.#countRange(selection, range, most)
      if (isFailure(rows)) return rows
      if (rows === undefined || rows <= most || to - first <= 1) return { ...range, rows }
      const part = Math.min(1 / 2, Math.max(1 / 64, (0.9 * most) / rows))
      to = first + Math.max(1, Math.floor((to - first) * part))
    }
  }

  async count(selection: ExportSelection): Promise<number | Failure> {
    const rows = await this.#countRange(selection, { from: 0, to: findEnd(selection) }, EXPORT_COUNTED)
    return rows ?? 0
  }

  /** The time of the first row, as far as the upstream shows it; undefined if there are none. */
  async #findFirst(selection: ExportSelection, range: Range): Promise<number | undefined | Failure> {
    let first: number | undefined
    for (const part of this.#listParts(selection)) {
      const page = await this.#search(part, selection, range, '1')
      if (isFailure(page) && isUnknownType(page)) return undefined
      if (isFailure(page)) return page
      const [match] = page.matches
      if (!match && !page.cursors.has('next')) continue
      const time = (match && toRow(match).updated) ?? range.from
      first = Math.min(first ?? time, Math.max(time, range.from))
    }
    return first
  }

  /** Whether the caller may know how many resources of the type the upstream has. */
  #isCounted({ type }: ExportSelection): boolean {
    const { access } = this.#request
    return access.filterFor(type, 's') === 'everything' && access.filterFor(type, 'r') === 'everything'
  }

  /** More than `most` if there are more; undefined if the upstream does not say. */
  async #countRange(
    selection: ExportSelection,
    range: Range,
    most: number,
  ): Promise<number | undefined | Failure> {
    let rows = 0
    for (const part of this.#listParts(selection)) {
      const found = await this.#countPart(part, selection, range, most)
      if (found === undefined || isFailure(found)) return found
      rows += found
      if (rows > most) break
    }
    return rows
  }

  /** The upstream's total may include resources outside the access, so that the matches of a limited caller are counted one by one. */
  async #countPart(
    part: Part,
    selection: ExportSelection,
    range: Range,
    most: number,
  ): Promise<number | undefined | Failure> {
    const request = this.#createSearch(part, selection, range, EXPORT_PAGE)
    const context = this.#bind(request.work)
    if (this.#isCounted(selection)) return countUpstream(context, request)
    const count = await visitMatches(context, request, most, () => undefined)
    const isMore = count === 'too-many' || (isFailure(count) && isExcess(count))
    return isMore ? 4 * most : count
  }

  async *read(
    selection: ExportSelection,
    { from = 0, to = findEnd(selection) }: Partial<ExportRange>,
  ): AsyncIterable<readonly ExportRow[] | Failure> {
    if (selection.isDeleted) return yield* this.#readDeletions(selection)
    for (const part of this.#listParts(selection)) yield* this.#readPart(part, selection, { from, to })
  }

  /**
   * Reads in the order of the last change, and each time from the last row: a resource that changes meanwhile leaves the
   * result, and by their number the next rows would move to the page before. Where the upstream does not sort, nothing may
   * have changed until the end.
   */
  async *#readPart(
    part: Part,
    selection: ExportSelection,
    { from: start, to }: Range,
  ): AsyncIterable<readonly ExportRow[] | Failure> {
    let from = start
    let shown = new Set<string>()
    let cursor: PageCursor | undefined
    let isByPosition = false
    for (;;) {
      const page = await this.#search(part, selection, { from, to }, EXPORT_PAGE, cursor)
      if (isFailure(page)) return yield page
      if (page.lacks) return yield CUT
      const rows = page.matches.map(toRow)
      yield rows.filter(row => !shown.has(row.id) && part.isFirst(row.parse()))
      const next = page.cursors.get('next')
      if (!next) break
      const last = findLastTime(rows)
      if (last !== undefined && last > from) {
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
    const range = { from: selection.moment.time + 1, to: Number.POSITIVE_INFINITY }
    const later = await this.#search(part, rest, range, '1')
    return !isFailure(later) && later.matches.length === 0 && !later.cursors.has('next')
  }

  #search(
    part: Part,
    selection: ExportSelection,
    range: Range,
    count: string,
    cursor?: PageCursor,
  ): Promise<SearchPage | Failure> {
    const request = this.#createSearch(part, selection, range, count)
    return performSearch(this.#bind(request.work), request, cursor)
  }

  #createSearch(
    { access, params }: Part,
    { type, since = 0, until = Number.POSITIVE_INFINITY }: ExportSelection,
    range: Range,
    count: string,
  ): FhirRequest<Search> {
    const from = Math.max(since, range.from)
    const to = Math.min(until, range.to)
    const times: Params = [
      ...(Number.isFinite(to) ? [['_lastUpdated', `lt${formatTime(to)}`] as const] : []),
      ...(from > 0 ? [['_lastUpdated', `ge${formatTime(from)}`] as const] : []),
      ['_sort', '_lastUpdated'],
      ['_count', count],
    ]
    const interaction: Search = { kind: 'search-type', type, params: [...params, ...times] }
    return { ...this.#request, access, work: new Work(), interaction }
  }

  /** One range, if anything has changed: an upstream does not count its deletions. */
  async #divideDeletions(selection: ExportSelection): Promise<ExportRange | undefined | Failure> {
    const page = await this.#findVersions(selection, 1)
    if (isFailure(page)) return isUnknownType(page) ? undefined : page
    const isEmpty = page.versions.length === 0 && !page.cursors.has('next')
    return isEmpty ? undefined : { from: 0, to: findEnd(selection) }
  }

  /** The resources that are deleted now and were so at the moment. One that exists again is in the next export. */
  async *#readDeletions(selection: ExportSelection): AsyncIterable<readonly ExportRow[] | Failure> {
    const { moment, until = Number.POSITIVE_INFINITY } = selection
    const shown = new Set<string>()
    let cursor: PageCursor | undefined
    for (;;) {
      const page = await this.#findVersions(selection, EXPORT_VERSIONS, cursor)
      if (isFailure(page)) return yield page
      const rows: ExportRow[] = []
      for (const { method, id, lastModified } of page.versions) {
        const time = (lastModified !== undefined && parseDateRange(lastModified)?.low) || 0
        if (method !== 'DELETE' || shown.has(id) || time > moment.time || time >= until) continue
        shown.add(id)
        const row = await this.#readDeleted(selection.type, id)
        if (isFailure(row)) return yield row
        if (row) rows.push(row)
      }
      yield rows
      const next = page.cursors.get('next')
      if (!next) return
      cursor = parseCursor(next)
    }
  }

  #findVersions(
    { type, since }: ExportSelection,
    count: number,
    cursor?: PageCursor,
  ): Promise<HistoryPage | Failure> {
    const used: Params = since === undefined ? [] : [['_since', formatTime(since)]]
    const work = new Work()
    const interaction = { kind: 'history-type', type, params: used } as const
    const query = { count, since, at: undefined, used }
    return findHistory(this.#bind(work), { ...this.#request, work, interaction }, query, cursor)
  }

  /** With the content before the deletion, by which it is checked; undefined if the resource exists. */
  async #readDeleted(type: string, id: string): Promise<ExportRow | undefined | Failure> {
    const context = this.#bind(new Work())
    const current = await readVersion(context, this.#request, type, id)
    if (isFailure(current)) return current
    if (!current?.deleted) return undefined
    const content = await readLast(context, this.#request, type, id)
    if (content === undefined || isFailure(content)) return content
    return { type, id, text: JSON.stringify(content), parse: () => content }
  }

  /** The searches whose results make up the rows: for some patients at a time, and for each of the queries. */
  #listParts({ type, filters, of, patients = of }: ExportSelection): readonly Part[] {
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

/** Times in milliseconds: of `from` or later, and before `to`. */
interface Range {
  readonly from: number
  readonly to: number
}

function findEnd({ moment }: ExportSelection): number {
  return moment.time + 1
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
  return { type: entry.type, id: entry.id, text: toLine(entry.text), parse: () => resource, updated }
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
