import { randomUUID } from 'node:crypto'
import type { Kysely, Selectable } from 'kysely'
import { prepareInsert, prepareQuery, type Schema, sha256 } from '../../store/index.ts'
import type { Clinician } from '../clinician.ts'
import type { AuthSettings } from '../context.ts'
import { stylePath } from '../discovery.ts'
import type { LabSettings } from '../lab/settings.ts'
import type { ExtraContext } from '../launch/options.ts'

/** The access that a clinician granted to a client. */
export interface Grant {
  readonly id: string
  readonly clientId: string
  readonly scope: string
  readonly patientId: string | undefined
  readonly encounterId: string | undefined
  readonly needPatientBanner: boolean | undefined
  /** Whether it follows from an EHR launch. */
  readonly fromEhr: boolean
  readonly extraContext: ExtraContext
  readonly lab?: LabSettings | undefined
  readonly authTime: number
  readonly acr: string | undefined
  readonly amr: readonly string[] | undefined
  /** The user's own resource in this grant: that of the clinician, or a RelatedPerson of the patient. */
  readonly fhirUserId: string
  readonly clinician: { readonly id: string; readonly displayName: string; readonly fhirUserId: string }
  /** When it ends: undefined means never, 0 that it has ended. */
  readonly endsAt: number | undefined
}

export type NewGrant = Omit<Grant, 'id' | 'clinician' | 'fhirUserId' | 'endsAt'> & {
  readonly fhirUserId: string | undefined
  readonly clinicianId: string
  readonly loginIdHash: string
  /** The launch id of the request. It becomes the id of the grant and the prefix of every `jti`. */
  readonly launchId: string | undefined
}

export async function createGrant(db: Kysely<Schema>, grant: NewGrant, now: number): Promise<string> {
  const id = grant.launchId ?? randomUUID()
  await insertGrant(db, {
    id,
    client_id: grant.clientId,
    clinician_id: grant.clinicianId,
    login_id_hash: grant.loginIdHash,
    scope: grant.scope,
    patient_id: grant.patientId ?? null,
    encounter_id: grant.encounterId ?? null,
    need_patient_banner: grant.needPatientBanner ?? null,
    context: JSON.stringify({
      ...grant.extraContext,
      fromEhr: grant.fromEhr,
      fhirUserId: grant.fhirUserId,
    }),
    lab: grant.lab === undefined ? null : JSON.stringify(grant.lab),
    auth_time: grant.authTime,
    acr: grant.acr ?? null,
    amr: grant.amr === undefined ? null : JSON.stringify(grant.amr),
    created_at: now,
    last_used_at: now,
    revoked_at: null,
  })
  return id
}

const insertGrant = prepareInsert('grant')

/**
 * Finds an active grant: it is not revoked, its clinician is not disabled and, unless it has `offline_access`, its login
 * has not ended.
 */
export async function findLiveGrant(db: Kysely<Schema>, id: string, now: number): Promise<Grant | undefined> {
  const [row] = (await selectGrant(db, { id })).rows
  const grant = row && toGrant(row)
  return grant?.endsAt === undefined || grant.endsAt > now ? grant : undefined
}

const selectGrant = prepareQuery((db, { id }: { id: string }) =>
  db
    .selectFrom('grant')
    .innerJoin('clinician', 'clinician.id', 'grant.clinician_id')
    .leftJoin('login', 'login.id_hash', 'grant.login_id_hash')
    .selectAll('grant')
    .select(['clinician.display_name', 'clinician.fhir_user_id', 'login.expires_at as login_expires_at'])
    .where('grant.id', '=', id)
    .where('grant.revoked_at', 'is', null)
    .where('clinician.disabled', '=', false),
)

/** Revokes a grant with all its codes and tokens. False if it was revoked before. */
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

function toGrant(row: GrantRow): Grant {
  const { fromEhr = false, fhirUserId, ...extraContext } = row.context === null ? {} : JSON.parse(row.context)
  return {
    id: row.id,
    clientId: row.client_id,
    scope: row.scope,
    patientId: row.patient_id ?? undefined,
    encounterId: row.encounter_id ?? undefined,
    needPatientBanner: row.need_patient_banner ?? undefined,
    fromEhr,
    extraContext,
    lab: row.lab === null ? undefined : JSON.parse(row.lab),
    authTime: row.auth_time,
    acr: row.acr ?? undefined,
    amr: row.amr === null ? undefined : JSON.parse(row.amr),
    fhirUserId: fhirUserId ?? row.fhir_user_id,
    clinician: {
      id: row.clinician_id,
      displayName: row.display_name,
      fhirUserId: row.fhir_user_id,
    },
    endsAt: hasScope(row.scope, 'offline_access') ? undefined : (row.login_expires_at ?? 0),
  }
}

/** The launch context in a token response or an introspection response (SMART 2.2, launch context). */
export function buildContextMembers({ issuerUrl }: Pick<AuthSettings, 'issuerUrl'>, grant: Grant) {
  const { patientId, encounterId, needPatientBanner, fromEhr, extraContext, lab } = grant
  const style = lab?.style ?? `${issuerUrl}${stylePath}`
  return {
    ...(patientId === undefined ? {} : { patient: patientId }),
    ...(encounterId === undefined ? {} : { encounter: encounterId }),
    ...(needPatientBanner === undefined ? {} : { need_patient_banner: needPatientBanner }),
    ...extraContext,
    ...(fromEhr && style !== 'none' ? { smart_style_url: style } : {}),
  }
}

/** The owner of a grant, active or not. */
export interface AuditedGrant {
  readonly client: string
  readonly clinician: Pick<Clinician, 'id' | 'fhirUserId'>
  readonly patient: string | undefined
  readonly launch: string
}

/** Finds the grant of a code or refresh token, used or not, of any client. For the audit trail only. */
export async function findGrantForAudit(
  db: Kysely<Schema>,
  sent: { readonly code: string | undefined; readonly refreshToken: string | undefined },
): Promise<AuditedGrant | undefined> {
  const id = (await findGrantOfCode(db, sent.code)) ?? (await findGrantOfRefreshToken(db, sent.refreshToken))
  if (id === undefined) return undefined
  const row = await db
    .selectFrom('grant')
    .innerJoin('clinician', 'clinician.id', 'grant.clinician_id')
    .select(['clinician.id', 'fhir_user_id', 'patient_id', 'client_id'])
    .where('grant.id', '=', id)
    .executeTakeFirst()
  return (
    row && {
      client: row.client_id,
      clinician: { id: row.id, fhirUserId: row.fhir_user_id },
      patient: row.patient_id ?? undefined,
      launch: id,
    }
  )
}

async function findGrantOfCode(db: Kysely<Schema>, code: string | undefined): Promise<string | undefined> {
  if (code === undefined) return undefined
  const found = await db
    .selectFrom('authorization_code')
    .select('grant_id')
    .where('code_hash', '=', sha256(code))
    .executeTakeFirst()
  return found?.grant_id
}

async function findGrantOfRefreshToken(
  db: Kysely<Schema>,
  token: string | undefined,
): Promise<string | undefined> {
  if (token === undefined) return undefined
  const found = await db
    .selectFrom('refresh_token')
    .select('grant_id')
    .where('token_hash', '=', sha256(token))
    .executeTakeFirst()
  return found?.grant_id
}
