import { findRecords, formatRepeats, type KeptRecord } from '../../../audit/index.ts'
import { PORTAL_CLIENT } from '../../../smart/index.ts'
import { readDetails } from '../../base/audit.ts'
import type { Comparison } from '../../base/refusal.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { EXPECTED_STATUSES, findFirstEvents, groupByLaunch } from './describe.ts'
import { type Advice, adviseOn } from './explain.ts'
import { KINDS } from './view.ts'

/** A refused or failed request, or a code that lacks a scope or the state, as the activity page explains it. */
export interface Problem {
  readonly at: string
  readonly kind: string
  readonly status: number
  readonly app: string | undefined
  readonly launch: string | undefined
  readonly request: string | undefined
  readonly cause: string
  readonly action: string | undefined
  /** What was sent, beside what it was compared with. */
  readonly compared: readonly Comparison[] | undefined
}

const FAILED = {
  events: [{ kind: 'fhir' }],
  otherThanClient: PORTAL_CLIENT,
  allowed: true,
  outcomes: ['4', '8'],
  otherThanStatus: EXPECTED_STATUSES,
} as const

const NO_NAMES = { user: () => undefined, app: () => undefined }

/** The newest problems, oldest first. */
export async function listProblems(
  context: Pick<AuthContext, 'store' | 'explainRequest' | 'hooks'>,
  { since, limit }: { readonly since: number; readonly limit: number },
): Promise<readonly Problem[]> {
  const { store } = context
  const events = Object.keys(KINDS).map(kind => ({ kind }))
  const [refused, failed, codes] = await Promise.all([
    findRecords(store, { events, otherThanClient: PORTAL_CLIENT, allowed: false, since, limit }),
    findRecords(store, { ...FAILED, since, limit }),
    findRecords(store, { events: [{ kind: 'authorize' }], allowed: true, since, limit }),
  ])
  const records = [...refused, ...failed, ...codes]
  const first = await findFirstEvents(store, records)
  const groups = groupByLaunch(records, { first, addsFirst: false, isNewestFirst: true, names: NO_NAMES })
  return groups
    .flatMap(group => group.events.map(record => ({ record, advice: adviseOn(record, group, context) })))
    .filter(({ record, advice }) => !record.allowed || advice)
    .sort(({ record: a }, { record: b }) => a.at - b.at || a.id - b.id)
    .slice(-limit)
    .map(({ record, advice }) => describe(record, advice))
}

function describe(record: KeptRecord, advice: Advice | undefined): Problem {
  const { at, kind, status, client_id, launch_id, method, request, reason, repeats, details } = record
  const count = repeats === null ? '' : ` (${formatRepeats(repeats)})`
  return {
    at: new Date(at).toISOString(),
    kind,
    status,
    app: client_id ?? undefined,
    launch: launch_id ?? undefined,
    request: kind === 'fhir' ? `${method ?? ''} ${request || '[base]'}`.trimStart() : undefined,
    cause: `${advice?.cause ?? reason ?? 'The request was refused.'}${count}`,
    action: advice?.action,
    compared: readDetails(details).compared,
  }
}
