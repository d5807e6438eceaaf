/** What records of earlier releases say in their texts. The tables are closed: new records have details. */
import type { KeptRecord } from '../../audit/index.ts'
import { readDetails } from '../base/audit.ts'

type OldRecord = Pick<KeptRecord, 'reason' | 'details'>

const OLD_ORIGINS = [
  ['Issued on the command line', 'command'],
  ['Launched by the lab', 'lab'],
] as const

export function findOldOrigin({ reason }: OldRecord): string | undefined {
  return OLD_ORIGINS.find(([start]) => reason?.startsWith(start))?.[1]
}

export function findOldSimulation({ reason, details }: OldRecord): string | undefined {
  const { origin, reason: named } = readDetails(details)
  const isOld = origin === undefined && named === undefined
  return isOld ? /simulated by the lab: ([a-z0-9:_-]+)/i.exec(reason ?? '')?.[1] : undefined
}
