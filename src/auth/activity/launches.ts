import { findFirstOAuthEvents, type KeptRecord } from '../../audit/index.ts'
import { PORTAL_CLIENT } from '../../smart/index.ts'
import type { Store } from '../../store/index.ts'
import { LIMITS } from '../limits.ts'
import { describeApp, type Names } from './describe.ts'

/** The events of a launch, oldest first; or of the portal itself, or without a launch. */
export interface LaunchGroup {
  readonly key: string
  readonly title: string
  readonly launch: string | undefined
  readonly events: readonly KeptRecord[]
  /** Its first OAuth events, even if they are not shown. */
  readonly first: readonly KeptRecord[]
}

/** Finds the first OAuth events of the launches of the records. */
export function findFirstEvents(
  store: Store,
  records: readonly KeptRecord[],
): Promise<readonly KeptRecord[]> {
  const launches = new Set(records.flatMap(record => record.launch_id ?? []))
  return findFirstOAuthEvents(store, [...launches], LIMITS.activityFirstEvents)
}

/** The records of the first launches, so that a page has a limited size. */
export function limitLaunches(records: readonly KeptRecord[]): readonly KeptRecord[] {
  const keys = new Set<string>()
  const end = records.findIndex(record => keys.add(chooseKey(record)).size > LIMITS.activityLaunches)
  return end < 0 ? records : records.slice(0, end)
}

/** Groups records, which are newest first, by their launch. The launch with the newest record comes first. */
export function groupByLaunch(
  records: readonly KeptRecord[],
  { first, addsFirst, names }: { first: readonly KeptRecord[]; addsFirst: boolean; names: Names },
): readonly LaunchGroup[] {
  const firstByLaunch = Map.groupBy(first, record => record.launch_id)
  return [...Map.groupBy(records, chooseKey)].map(([key, own]) => {
    const launch = own[0]?.launch_id ?? undefined
    const of = (launch !== undefined && firstByLaunch.get(launch)) || []
    const events = new Map([...own, ...(addsFirst ? of : [])].map(record => [record.id, record]))
    const sorted = [...events.values()].sort((a, b) => a.at - b.at || a.id - b.id)
    return { key, launch, events: sorted, first: of, title: chooseTitle(key, [...of, ...own], names) }
  })
}

function chooseKey({ launch_id, client_id }: KeptRecord): string {
  return launch_id ?? (client_id === PORTAL_CLIENT ? 'portal' : 'none')
}

function chooseTitle(key: string, events: readonly KeptRecord[], names: Names): string {
  if (key === 'none') return 'Without a launch'
  const named = events.find(({ client_id }) => client_id !== null)
  return describeApp(named ?? { client_id: null }, names)
}

/** How the app got its access. */
export function describeOrigin({ key, launch, first }: LaunchGroup): string | undefined {
  if (key === 'portal') return 'The requests of the portal itself'
  if (launch === undefined) return undefined
  if (launch.startsWith('client-')) return 'Backend service'
  if (first[0]?.kind !== 'launch') return first.length === 0 ? undefined : 'Standalone launch'
  return first[0].reason?.startsWith('Launched by the lab') ? 'Lab launch' : 'EHR launch'
}

/** The scopes that the launch had at the time of a record. */
export function findScope({ first }: LaunchGroup, { at }: KeptRecord): string | undefined {
  const issued = first.filter(({ kind, allowed }) => allowed && (kind === 'token' || kind === 'refresh'))
  return (issued.findLast(record => record.at <= at) ?? issued[0])?.decided_by ?? undefined
}
