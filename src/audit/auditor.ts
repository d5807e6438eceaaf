import { sql, type Transaction } from 'kysely'
import { isDatabaseUnavailable, type Schema, type Store } from '../store/index.ts'
import { type CountingAuditor, countAnonymous } from './count-anonymous.ts'
import { actionOf } from './fhir/codes.ts'
import { groupCommit } from './group-commit.ts'
import { type AuditRecord, type AuditRow, rowOf } from './record.ts'

/** Keeps what happened. Every server that is given one records before it answers (contract 5.8). */
export interface Auditor {
  /**
   * Resolves when the records are on the disk: only then may the response go out. Rejects with `AuditUnavailable` when
   * they cannot be kept, unless the settings let requests pass all the same.
   */
  record(...records: readonly AuditRecord[]): Promise<void>
  /**
   * Adds the records to a transaction, so that they are kept if it commits. Rejects with `AuditUnavailable` when they
   * cannot be added, which rolls back the change that they are about.
   */
  recordIn(trx: Transaction<Schema>, ...records: readonly AuditRecord[]): Promise<void>
  /** To be asked before data are changed: rejects while records cannot be kept, so that nothing is changed in the dark. */
  prepare(): Promise<void>
}

/** The store cannot take audit records: the request is refused with 503, worth trying again. */
export class AuditUnavailable extends Error {
  readonly statusCode = 503
  constructor(cause: unknown) {
    super('Cannot keep the audit record, so the request was refused', { cause })
  }
}

/** Keeps nothing (`smart.server.audit=false`). */
export const noAudit: Auditor = { record: async () => {}, recordIn: async () => {}, prepare: async () => {} }

export interface AuditorOptions {
  readonly store: Pick<Store, 'append' | 'ping'>
  /** `smart.server.audit-failure`: what becomes of requests while the store cannot take their records. */
  readonly failure?: 'refuse' | 'allow'
  /** Told of a failure with the records that were not kept; they hold no secret and may be logged. */
  readonly onError?: (error: unknown, records: readonly AuditRecord[]) => void
  readonly clock?: () => number
}

/** How long the store is left alone after it failed. */
const REST_MS = 1000

/** Keeps records in the store, those that come together in one commit, and counts repeated anonymous requests. */
export function createAuditor(options: AuditorOptions): CountingAuditor {
  return countAnonymous(createStoreAuditor(options), options.clock ?? Date.now)
}

function createStoreAuditor(options: AuditorOptions): Auditor {
  const { store, failure = 'refuse', onError = () => {}, clock = Date.now } = options
  const rows = groupCommit<AuditRow>({
    write: list => store.append('audit_event', list),
    isOutage: isDatabaseUnavailable,
  })
  let away: { readonly until: number; readonly cause: unknown } | undefined
  /** Of changes that were made as the store went away. Few: `prepare` lets no more be made. */
  let owed: readonly AuditRecord[] = []

  /** What is owed follows as soon as the store is back. Nobody waits for it: whoever asked was refused. */
  function follow(): void {
    if (owed.length === 0) return
    const records = owed
    owed = []
    rows.add(records.map(rowOf)).catch(() => {
      owed = [...records, ...owed]
    })
  }

  async function reach<T>(attempt: () => Promise<T>): Promise<void> {
    const now = clock()
    if (away && now < away.until) throw away.cause
    try {
      await attempt()
      away = undefined
      follow()
    } catch (cause) {
      if (isDatabaseUnavailable(cause)) away = { until: clock() + REST_MS, cause }
      throw cause
    }
  }

  return {
    async record(...records) {
      try {
        await reach(() => rows.add(records.map(rowOf)))
      } catch (cause) {
        onError(cause, records)
        if (failure === 'allow') return
        owed = [...owed, ...records.filter(isChange)]
        throw new AuditUnavailable(cause)
      }
    },
    async recordIn(trx, ...records) {
      try {
        await (failure === 'allow' ? insertOrSkip(trx, records) : insert(trx, records))
      } catch (cause) {
        onError(cause, records)
        if (failure !== 'allow') throw new AuditUnavailable(cause)
      }
    },
    async prepare() {
      if (failure === 'allow') return
      try {
        await reach(() => store.ping())
      } catch (cause) {
        throw new AuditUnavailable(cause)
      }
    },
  }
}

async function insert(trx: Transaction<Schema>, records: readonly AuditRecord[]): Promise<void> {
  await trx.insertInto('audit_event').values(records.map(rowOf)).execute()
}

/** A savepoint keeps the rest of the transaction: PostgreSQL aborts all of it when one statement fails. */
async function insertOrSkip(trx: Transaction<Schema>, records: readonly AuditRecord[]): Promise<void> {
  await sql`savepoint audit`.execute(trx)
  try {
    await insert(trx, records)
  } catch (error) {
    await sql`rollback to savepoint audit`.execute(trx)
    throw error
  } finally {
    await sql`release savepoint audit`.execute(trx)
  }
}

function isChange({ kind, interaction, allowed, status }: AuditRecord): boolean {
  if (kind === 'revoke') return allowed
  return kind === 'fhir' && allowed && status < 400 && /^[CUD]$/.test(actionOf(kind, interaction ?? null))
}
