import type { RecordFilter } from '../../../audit/index.ts'
import { MINUTE_MS } from '../../../core/index.ts'
import { PORTAL_CLIENT } from '../../../smart/index.ts'
import { formatPosition, type Position, parseNumberedPosition } from '../../../store/index.ts'
import { paths } from '../../base/paths.ts'
import type { Parameters } from '../../base/request.ts'
import { KINDS } from '../parts/explain/describe.ts'

export const TIMES = {
  '15m': ['Last 15 minutes', 15],
  '1h': ['Last hour', 60],
  '24h': ['Last 24 hours', 24 * 60],
  '7d': ['Last 7 days', 7 * 24 * 60],
} as const

const RESULTS = ['all', 'allowed', 'refused', 'problems'] as const

/** The filters of the activity page. They are in the URL, so that it can be shared. */
export interface ActivityView {
  readonly result: (typeof RESULTS)[number]
  readonly kind: keyof typeof KINDS | undefined
  readonly time: keyof typeof TIMES | undefined
  readonly app: string | undefined
  readonly patient: string | undefined
  readonly launch: string | undefined
  /** The request id of a refused or failed request, which error pages show. It replaces the other filters. */
  readonly reference: string | undefined
  /** Whether the requests of the portal itself are shown. */
  readonly portal: boolean
  /** Older than this record. */
  readonly before: Position<number> | undefined
}

export function readView(query: Parameters): ActivityView {
  const reference = readTrimmed(query.get('reference'))
  return {
    result: (reference === undefined && RESULTS.find(result => result === query.get('result'))) || 'all',
    kind: readKey(KINDS, query.get('kind')),
    time: readKey(TIMES, query.get('time')),
    app: readTrimmed(query.get('app')),
    patient: readTrimmed(query.get('patient')),
    launch: readTrimmed(query.get('launch')),
    reference,
    portal: query.get('portal') === '1',
    before: parseNumberedPosition(query.get('before')),
  }
}

function readKey<Key extends string>(
  table: Readonly<Record<Key, unknown>>,
  text: string | undefined,
): Key | undefined {
  return text !== undefined && Object.hasOwn(table, text) ? (text as Key) : undefined
}

function readTrimmed(text: string | undefined): string | undefined {
  const plain = text?.trim()
  return plain === '' ? undefined : plain
}

export function buildUrl(view: ActivityView, change: Partial<ActivityView> = {}): string {
  const { result, portal, before, ...texts } = { ...view, ...change }
  const query = new URLSearchParams()
  if (result !== 'all') query.set('result', result)
  for (const [name, value] of Object.entries(texts)) if (value !== undefined) query.set(name, value)
  if (portal) query.set('portal', '1')
  if (before) query.set('before', formatPosition(before))
  const text = query.toString()
  return text === '' ? paths.activity : `${paths.activity}?${text}`
}

export function buildFilter(view: ActivityView, now: number): RecordFilter {
  const { kind, time, app, patient, launch, reference } = view
  if (reference !== undefined) return { reference }
  const kinds = kind === undefined ? Object.keys(KINDS) : [kind]
  return {
    events: kinds.map(name => ({ kind: name })),
    clients: app === undefined ? undefined : [app],
    otherThanClient: showsPortal(view) ? undefined : PORTAL_CLIENT,
    launch,
    patients: patient === undefined ? undefined : [patient],
    since: time && now - TIMES[time][1] * MINUTE_MS,
  }
}

export function showsPortal({ portal, app }: ActivityView): boolean {
  return portal || app === PORTAL_CLIENT
}

/** Whether some events of a launch may be left out. */
export function isNarrowed({ result, kind, time, app, patient, launch, reference }: ActivityView): boolean {
  const isPicked = [kind, time, app, patient, launch, reference].some(value => value !== undefined)
  return result !== 'all' || isPicked
}
