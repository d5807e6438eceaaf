import { parseDay } from '../../../../web/ui/index.ts'
import { paths } from '../../../base/paths.ts'
import type { Parameters } from '../../../base/request.ts'
import { ACCESS_KINDS, type AccessKind } from './visits.ts'

/** The filters of the page, which are in its URL, and the time zone of its days. */
export interface AccessLogView {
  readonly patient: string
  /** An event of the person. It names nobody by itself. */
  readonly person: string | undefined
  readonly app: string | undefined
  readonly kind: AccessKind | undefined
  readonly since: string | undefined
  readonly until: string | undefined
  /** The event before which the page begins. */
  readonly before: string | undefined
  readonly zone: string
}

export function readView(
  query: Parameters,
  patients: readonly [string, ...string[]],
  zone: string,
): AccessLogView {
  const read = (name: keyof AccessLogView) => query.get(name)?.trim() || undefined
  const kind = read('kind') ?? ''
  return {
    patient: patients.find(id => id === read('patient')) ?? patients[0],
    person: read('person'),
    app: read('app'),
    kind: isKind(kind) ? kind : undefined,
    since: keepDay(read('since')),
    until: keepDay(read('until')),
    before: read('before'),
    zone,
  }
}

/** A day of the filters that cannot be used. */
export interface DayFault {
  readonly field: 'since' | 'until'
  readonly text: string
}

export function findDayFault(query: Parameters): DayFault | undefined {
  const since = query.get('since')?.trim() || undefined
  const until = query.get('until')?.trim() || undefined
  for (const [field, day] of [
    ['since', since],
    ['until', until],
  ] as const)
    if (day !== undefined && keepDay(day) === undefined)
      return { field, text: 'Enter a day, such as 2026-11-30.' }
  const isReversed = since !== undefined && until !== undefined && since > until
  return isReversed ? { field: 'until', text: 'This day is before “From”. Choose a later one.' } : undefined
}

function isKind(text: string): text is AccessKind {
  return Object.hasOwn(ACCESS_KINDS, text)
}

export function isNarrowed({ person, app, kind, since, until }: AccessLogView): boolean {
  return [person, app, kind, since, until].some(value => value !== undefined)
}

function keepDay(text: string | undefined): string | undefined {
  return text !== undefined && parseDay(text, 'UTC') !== undefined ? text : undefined
}

/** The URL of a page with these filters. The zone is that of the browser. */
export function buildUrl(
  { zone: _, ...view }: Partial<AccessLogView>,
  path: string = paths.accountAccessLog,
): string {
  const query = new URLSearchParams(
    Object.entries(view).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
  return query.size === 0 ? path : `${path}?${query}`
}
