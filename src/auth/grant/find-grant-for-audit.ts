import type { Kysely } from 'kysely'
import { type Schema, sha256 } from '../../store/index.ts'
import type { Clinician } from '../clinician/clinician.ts'

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
