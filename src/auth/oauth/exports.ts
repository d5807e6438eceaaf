import type { Transaction } from 'kysely'
import {
  cutPage,
  formatPosition,
  parsePosition,
  readAfter,
  type Schema,
  type Store,
} from '../../store/index.ts'

/** A bulk export that has neither ended nor expired. What it selects is encrypted: only the FHIR server reads it. */
export interface BulkExport {
  readonly id: string
  /** Of the tokens, if it is not this server. */
  readonly issuer: string
  readonly clientId: string
  /** Its id if it is not registered here. */
  readonly clientName: string
  readonly level: string
  readonly types: string
  readonly startedAt: number
  readonly expiresAt: number
  readonly state: ExportState
  /** The number of files, once it is known. */
  readonly files: number | undefined
  /** When the client last asked for the files, until they are known. */
  readonly askedAt: number | undefined
}

/** A server prepares the files only while the client asks for them: `idle` if it has stopped, `started` if it never did. */
export const EXPORT_STATES = ['started', 'preparing', 'idle', 'ready'] as const

export type ExportState = (typeof EXPORT_STATES)[number]

/** A client is told to ask every second. */
const IDLE_MS = 60_000

export interface ExportFilter {
  readonly clientIds?: readonly string[] | undefined
  readonly id?: string | undefined
  /** Of clients that this account registered. */
  readonly registeredBy?: string
  readonly after?: string | undefined
  readonly limit: number
}

/** Newest first. `next` is the position after the last one. */
export async function listExports(
  { store, clock }: { readonly store: Store; readonly clock: () => number },
  { after, limit, clientIds, id, registeredBy }: ExportFilter,
): Promise<{ readonly items: readonly BulkExport[]; readonly next: string | undefined }> {
  const now = clock()
  const rows = await store.db
    .selectFrom('export_job as job')
    .leftJoin('client', join =>
      join.onRef('client.client_id', '=', 'job.client_id').on('job.issuer', '=', ''),
    )
    .select(['job.id', 'issuer', 'job.client_id', 'client.name', 'level', 'types', 'started_at'])
    .select(['job.expires_at', 'next_poll_at', 'files'])
    .where('job.expires_at', '>', now)
    .$if(clientIds !== undefined, query => query.where('job.client_id', 'in', clientIds ?? []))
    .$if(id !== undefined, query => query.where('job.id', '=', id ?? ''))
    .$if(registeredBy !== undefined, query => query.where('registered_by', '=', registeredBy ?? ''))
    .$call(query => readAfter(query, parsePosition(after), ['job.started_at', 'job.id']))
    .limit(limit + 1)
    .execute()
  const { shown, last } = cutPage(rows, limit)
  return {
    items: shown.map(row => ({
      id: row.id,
      issuer: row.issuer,
      clientId: row.client_id,
      clientName: row.name ?? row.client_id,
      level: row.level,
      types: row.types,
      startedAt: row.started_at,
      expiresAt: row.expires_at,
      files: row.files ?? undefined,
      ...describeProgress(row.files, row.next_poll_at, now),
    })),
    next: last && formatPosition({ at: last.started_at, id: last.id }),
  }
}

/** Each request for the files moves the time of the next one, by a second, and by a minute while it is answered. */
function describeProgress(
  files: number | null,
  nextPollAt: number,
  now: number,
): Pick<BulkExport, 'state' | 'askedAt'> {
  if (files !== null) return { state: 'ready', askedAt: undefined }
  if (nextPollAt === 0) return { state: 'started', askedAt: undefined }
  return { state: now - nextPollAt < IDLE_MS ? 'preparing' : 'idle', askedAt: Math.min(nextPollAt, now) }
}

/** Ends an export, and returns what the audit trail says about it; undefined if there is none. */
export function removeExport(trx: Transaction<Schema>, id: string) {
  return trx
    .deleteFrom('export_job')
    .where('id', '=', id)
    .returning(['client_id', 'level', 'types'])
    .executeTakeFirst()
}
