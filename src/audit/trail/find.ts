import { type Selectable, sql } from 'kysely'
import type { Schema, Store } from '../../store/index.ts'

export type KeptRecord = Selectable<Schema['audit_event']>

export interface RecordFilter {
  readonly kind?: string | undefined
  readonly since?: number | undefined
  readonly before?: number | undefined
  readonly allowed?: boolean | undefined
  readonly patients?: readonly string[] | undefined
  readonly client?: string | undefined
  readonly launch?: string | undefined
  readonly id?: number | undefined
}

/** The id orders records of the same instant. */
export interface TrailPosition {
  readonly at: number
  readonly id: number
}

export interface FindOptions extends RecordFilter {
  readonly order?: 'newest' | 'oldest'
  readonly after?: TrailPosition | undefined
  readonly limit: number
}

export function findRecords({ db }: Store, options: FindOptions): Promise<KeptRecord[]> {
  const { order = 'newest', after, limit } = options
  const direction = order === 'newest' ? 'desc' : 'asc'
  const beyond = order === 'newest' ? '<' : '>'
  let query = filtered(db, options).selectAll()
  if (after)
    query = query.where(({ or, and, eb }) =>
      or([eb('at', beyond, after.at), and([eb('at', '=', after.at), eb('id', beyond, after.id)])]),
    )
  return query.orderBy('at', direction).orderBy('id', direction).limit(limit).execute()
}

export async function countRecords(
  { db }: Store,
  filter: RecordFilter,
): Promise<{ readonly allowed: number; readonly refused: number }> {
  const rows = await filtered(db, filter)
    .select(['allowed', sql<number>`sum(coalesce(repeats, 1))`.as('count')])
    .groupBy('allowed')
    .execute()
  const count = (allowed: boolean) => Number(rows.find(row => row.allowed === allowed)?.count ?? 0)
  return { allowed: count(true), refused: count(false) }
}

function filtered(db: Store['db'], filter: RecordFilter) {
  const { kind, since, before, allowed, patients, client, launch, id } = filter
  return db
    .selectFrom('audit_event')
    .$if(id !== undefined, query => query.where('id', '=', id ?? 0))
    .$if(kind !== undefined, query => query.where('kind', '=', kind ?? ''))
    .$if(since !== undefined, query => query.where('at', '>=', since ?? 0))
    .$if(before !== undefined, query => query.where('at', '<', before ?? 0))
    .$if(allowed !== undefined, query => query.where('allowed', '=', allowed ?? true))
    .$if(patients !== undefined, query =>
      patients?.length
        ? query.where(({ or, and, eb }) =>
            or([
              eb('patient_id', 'in', [...patients]),
              and([eb('patients', 'is not', null), or(patients.map(isAmongSeveral))]),
            ]),
          )
        : query.where(({ lit }) => lit(false)),
    )
    .$if(client !== undefined, query => query.where('client_id', '=', client ?? ''))
    .$if(launch !== undefined, query => query.where('launch_id', '=', launch ?? ''))
}

/** Exact comparison on both databases: LIKE has wildcards, and ignores case on one of them. */
function isAmongSeveral(patient: string) {
  return sql<boolean>`replace(patients, ${` ${patient} `}, '') <> patients`
}
