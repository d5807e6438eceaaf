import { setImmediate as yieldTurn } from 'node:timers/promises'
import {
  findPage,
  findRecords,
  formatRepeats,
  type KeptRecord,
  type RecordFilter,
} from '../../../audit/index.ts'
import { PORTAL_CLIENT } from '../../../smart/index.ts'
import type { Store } from '../../../store/index.ts'
import { readDetails } from '../../base/audit.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { ComparedValue } from '../../words/reason.ts'
import {
  EXPECTED_STATUSES,
  findFirstEvents,
  groupByLaunch,
  KINDS,
  type LaunchGroup,
} from '../parts/explain/describe.ts'
import { type Advice, adviseOn } from '../parts/explain/explain.ts'

/** A request that was refused, failed, or did not give the app what it asked for, as the activity page explains it. */
export interface ActivityProblem {
  readonly at: string
  readonly kind: string
  readonly status: number
  readonly app: string | undefined
  readonly launch: string | undefined
  readonly request: string | undefined
  readonly cause: string
  /** The text of the server, if the cause is another one. Explanations refer to it. */
  readonly reason: string | undefined
  readonly action: string | undefined
  /** The scopes of the token, if they decided. */
  readonly scope: string | undefined
  /** What was sent, beside what it was compared with. */
  readonly compared: readonly ComparedValue[] | undefined
}

/** A problem with its record. */
export interface FoundProblem {
  readonly record: KeptRecord
  readonly group: LaunchGroup
  readonly advice: Advice | undefined
  /** How often it occurred. */
  readonly times: number
}

type ProblemContext = Pick<AuthContext, 'store' | 'explainRequest' | 'hooks'>

const SEARCHES = ['search-type', 'search-compartment', 'search-system'] as const

/** Records that may be problems. `adviseOn` knows which of the allowed ones are. */
const CANDIDATES: readonly RecordFilter[] = [
  { allowed: false, events: Object.keys(KINDS).map(kind => ({ kind })) },
  {
    allowed: true,
    events: [{ kind: 'fhir' }],
    outcomes: ['4', '8'],
    otherThanStatus: EXPECTED_STATUSES,
  },
  { allowed: true, events: [{ kind: 'authorize' }] },
  { allowed: true, events: SEARCHES.map(interaction => ({ kind: 'fhir', interaction })), outcomes: ['0'] },
]

const NO_NAMES = { user: () => undefined, app: () => undefined }

type FindOptions = Parameters<typeof findRecords>[1]
type Find = (store: Store, options: FindOptions) => Promise<readonly KeptRecord[]>

/** The newest problems, newest first. The filter may limit the kinds. */
async function findProblems(
  context: ProblemContext,
  filter: FindOptions,
  find: Find,
): Promise<readonly FoundProblem[]> {
  const { store } = context
  const records: KeptRecord[] = []
  for (const { events = [], ...candidate } of CANDIDATES) {
    const wanted = events.filter(({ kind }) => filter.events?.some(one => one.kind === kind) ?? true)
    if (wanted.length > 0) records.push(...(await find(store, { ...filter, ...candidate, events: wanted })))
    // SQLite answers at once: without pauses, the queries of a page would block other requests.
    await yieldTurn()
  }
  const first = await findFirstEvents(store, records)
  const groups = groupByLaunch(records, { first, addsFirst: false, isNewestFirst: true, names: NO_NAMES })
  return groups
    .flatMap(group =>
      group.events.map(record => ({ record, group, advice: adviseOn(record, group, context), times: 1 })),
    )
    .filter(({ record, advice }) => !record.allowed || advice)
    .sort(({ record: a }, { record: b }) => b.at - a.at || b.id - a.id)
    .slice(0, filter.limit)
}

/** Finds distinct problems with a bounded amount of work, newest first, each with the newest of its records. */
export async function findDistinctProblems(
  context: ProblemContext,
  filter: FindOptions,
): Promise<readonly FoundProblem[]> {
  const found = await findProblems(
    context,
    filter,
    async (store, options) => (await findPage(store, options)).records,
  )
  const same = Map.groupBy(found, problem =>
    JSON.stringify({ ...describe(problem), at: undefined, launch: undefined }),
  )
  return [...same.values()].flatMap(([newest, ...older]) =>
    newest ? [{ ...newest, times: 1 + older.length }] : [],
  )
}

/** The newest problems, oldest first. */
export async function listProblems(
  context: ProblemContext,
  {
    client,
    ...filter
  }: { readonly since: number; readonly limit: number; readonly client?: string | undefined },
): Promise<readonly ActivityProblem[]> {
  const clients = client === undefined ? undefined : [client]
  const found = await findProblems(
    context,
    { ...filter, otherThanClient: PORTAL_CLIENT, clients },
    findRecords,
  )
  return found.map(describe).reverse()
}

/** Whether an explanation repeats the text of the server. */
function isSaid(text: string, { cause, action }: Advice): boolean {
  return `${cause.replace(/\.$/, '')}. ${action}`.includes(text)
}

function describe({ record, advice }: FoundProblem): ActivityProblem {
  const { at, kind, status, client_id, launch_id, method, request, reason, repeats } = record
  const { compared, detail } = readDetails(record.details)
  const count = repeats === null ? '' : ` (${formatRepeats(repeats)})`
  const said = [reason?.replace(/\.$/, ''), detail].filter(text => text).join(': ')
  return {
    at: new Date(at).toISOString(),
    kind,
    status,
    app: client_id ?? undefined,
    launch: launch_id ?? undefined,
    request: kind === 'fhir' ? `${method ?? ''} ${request || '[base]'}`.trimStart() : undefined,
    cause: `${advice?.cause ?? reason ?? 'The request was refused.'}${count}`,
    reason: advice && !isSaid(said, advice) ? said : undefined,
    action: advice?.action,
    scope: advice?.scope,
    compared,
  }
}
