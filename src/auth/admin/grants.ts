import { sql } from 'kysely'
import { hasScope, revokeGrant } from '../grant/grant.ts'
import { type Admin, AdminFailure, type ListPage, type PageRequest, perform } from './action.ts'

/** An app's access on behalf of a user, which has not ended. */
export interface GrantDescription {
  readonly id: string
  readonly clientId: string
  readonly clientName: string
  readonly clinicianId: string
  readonly username: string
  readonly scope: string
  readonly patientId: string | undefined
  readonly createdAt: number
  readonly lastUsedAt: number
  /** Undefined: until it is revoked. */
  readonly endsAt: number | undefined
}

/** One of both is set, so that an index has the grants in the order of the page. */
export interface GrantFilter extends PageRequest {
  readonly clientId?: string | undefined
  readonly clinicianId?: string | undefined
}

/** Grants that are read for a page at most, however few of them have not ended. */
const READ_FOR_PAGE = 2_000

/** Lists grants that have not ended, newest first. A page may have fewer than `limit`, and others may follow. */
export async function listGrants(
  { store, clock }: Pick<Admin, 'store' | 'clock'>,
  { clientId, clinicianId, after, limit }: GrantFilter,
): Promise<ListPage<GrantDescription> | AdminFailure> {
  if (clientId === undefined && clinicianId === undefined)
    return new AdminFailure('invalid', 'a list of grants needs a client or a clinician')
  const position = readPosition(after)
  const rows = await store.db
    .selectFrom('grant')
    .innerJoin('clinician', 'clinician.id', 'grant.clinician_id')
    .innerJoin('client', 'client.client_id', 'grant.client_id')
    .leftJoin('login', 'login.id_hash', 'grant.login_id_hash')
    .select(['grant.id', 'grant.client_id', 'client.name as client_name', 'grant.clinician_id', 'username'])
    .select(['grant.scope', 'patient_id'])
    .select(['grant.created_at', 'last_used_at', 'revoked_at', 'login.expires_at as login_expires_at'])
    .$if(clientId !== undefined, query => query.where('grant.client_id', '=', clientId ?? ''))
    .$if(clinicianId !== undefined, query => query.where('grant.clinician_id', '=', clinicianId ?? ''))
    .$if(position !== undefined, query =>
      query.where(sql<boolean>`("grant".created_at, "grant".id) < (${position?.createdAt}, ${position?.id})`),
    )
    .orderBy('grant.created_at', 'desc')
    .orderBy('grant.id', 'desc')
    .limit(READ_FOR_PAGE)
    .execute()
  const now = clock()
  const current = rows.filter(row => isCurrent(row, now))
  const shown = current.slice(0, limit)
  const last = current.length > limit ? shown.at(-1) : rows.length === READ_FOR_PAGE ? rows.at(-1) : undefined
  return { items: shown.map(toDescription), next: last && `${last.created_at}.${last.id}` }
}

interface Row {
  readonly id: string
  readonly client_id: string
  readonly client_name: string
  readonly clinician_id: string
  readonly username: string
  readonly scope: string
  readonly patient_id: string | null
  readonly created_at: number
  readonly last_used_at: number
  readonly revoked_at: number | null
  readonly login_expires_at: number | null
}

function readPosition(after: string | undefined) {
  const [, createdAt, id] = /^(\d{1,15})\.(.{1,100})$/.exec(after ?? '') ?? []
  return createdAt === undefined ? undefined : { createdAt: Number(createdAt), id }
}

function isCurrent({ revoked_at, scope, login_expires_at }: Row, now: number): boolean {
  return revoked_at === null && (hasScope(scope, 'offline_access') || (login_expires_at ?? 0) > now)
}

function toDescription(row: Row): GrantDescription {
  return {
    id: row.id,
    clientId: row.client_id,
    clientName: row.client_name,
    clinicianId: row.clinician_id,
    username: row.username,
    scope: row.scope,
    patientId: row.patient_id ?? undefined,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    endsAt: hasScope(row.scope, 'offline_access') ? undefined : (row.login_expires_at ?? 0),
  }
}

/** Revokes a grant with its tokens. FHIR servers refuse them within 5 seconds. */
export function revokeGrantById(admin: Admin, id: string): Promise<{ readonly id: string } | AdminFailure> {
  return perform(admin, async trx => {
    const grant = await trx
      .selectFrom('grant')
      .select(['client_id', 'clinician_id', 'scope'])
      .where('id', '=', id)
      .executeTakeFirst()
    if (!grant || !(await revokeGrant(trx, id, admin.clock())))
      return new AdminFailure('not_found', `there is no grant ${id}`)
    return { action: `grant revoke ${id}`, result: { id }, before: grant }
  })
}
