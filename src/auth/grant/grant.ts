import { randomUUID } from 'node:crypto'
import type { Kysely, Selectable } from 'kysely'
import type { Schema } from '../../store/index.ts'
import type { FurtherContext } from '../launch/further-context.ts'

/** What a clinician gave a client, with the clinician as far as tokens tell. */
export interface Grant {
  readonly id: string
  readonly clientId: string
  readonly scope: string
  readonly patientId: string | undefined
  readonly encounterId: string | undefined
  readonly needPatientBanner: boolean | undefined
  /** Whether a launch from the portal, or from a real EHR, led to it. */
  readonly fromEhr: boolean
  readonly further: FurtherContext
  readonly authTime: number
  readonly clinician: { readonly id: string; readonly displayName: string; readonly fhirUserId: string }
  /** Until when it can be used without its user: undefined means for ever, 0 that it has ended. */
  readonly endsAt: number | undefined
}

/** A grant before it is stored. */
export type NewGrant = Omit<Grant, 'id' | 'clinician' | 'endsAt'> & {
  readonly clinicianId: string
  readonly loginIdHash: string
  /** Of the request that it follows from: the grant takes it over, and tokens carry it on in their `jti`. */
  readonly launchId: string | undefined
}

export async function createGrant(db: Kysely<Schema>, grant: NewGrant, now: number): Promise<string> {
  const id = grant.launchId ?? randomUUID()
  await db
    .insertInto('grant')
    .values({
      id,
      client_id: grant.clientId,
      clinician_id: grant.clinicianId,
      login_id_hash: grant.loginIdHash,
      scope: grant.scope,
      patient_id: grant.patientId ?? null,
      encounter_id: grant.encounterId ?? null,
      need_patient_banner: grant.needPatientBanner ?? null,
      context: JSON.stringify({ ...grant.further, fromEhr: grant.fromEhr }),
      auth_time: grant.authTime,
      created_at: now,
      last_used_at: now,
      revoked_at: null,
    })
    .execute()
  return id
}

/**
 * The grant, while it lives: not revoked, its clinician not disabled and, unless it has `offline_access`, the login it
 * was made in not over.
 */
export async function findLiveGrant(db: Kysely<Schema>, id: string, now: number): Promise<Grant | undefined> {
  const row = await db
    .selectFrom('grant')
    .innerJoin('clinician', 'clinician.id', 'grant.clinician_id')
    .leftJoin('login', 'login.id_hash', 'grant.login_id_hash')
    .selectAll('grant')
    .select(['clinician.display_name', 'clinician.fhir_user_id', 'login.expires_at as login_expires_at'])
    .where('grant.id', '=', id)
    .where('grant.revoked_at', 'is', null)
    .where('clinician.disabled', '=', false)
    .executeTakeFirst()
  const grant = row && grantOf(row)
  return grant?.endsAt === undefined || grant.endsAt > now ? grant : undefined
}

/** Ends a grant with all codes and tokens that followed from it. Tells whether it had not ended before. */
export async function revokeGrant(db: Kysely<Schema>, id: string, now: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('grant')
    .set({ revoked_at: now })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

export function hasScope(scope: string, name: string): boolean {
  return scope.split(' ').includes(name)
}

type GrantRow = Selectable<Schema['grant']> & {
  readonly display_name: string
  readonly fhir_user_id: string
  readonly login_expires_at: number | null
}

function grantOf(row: GrantRow): Grant {
  const { fromEhr = false, ...further } = row.context === null ? {} : JSON.parse(row.context)
  return {
    id: row.id,
    clientId: row.client_id,
    scope: row.scope,
    patientId: row.patient_id ?? undefined,
    encounterId: row.encounter_id ?? undefined,
    needPatientBanner: row.need_patient_banner ?? undefined,
    fromEhr,
    further,
    authTime: row.auth_time,
    clinician: {
      id: row.clinician_id,
      displayName: row.display_name,
      fhirUserId: row.fhir_user_id,
    },
    endsAt: hasScope(row.scope, 'offline_access') ? undefined : (row.login_expires_at ?? 0),
  }
}
