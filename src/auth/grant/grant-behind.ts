import type { Kysely } from 'kysely'
import { type Schema, sha256 } from '../../store/index.ts'
import type { Clinician } from '../clinician/clinician.ts'

/** Whose a grant is, whether it lives or has ended. */
export interface GrantBehind {
  readonly clinician: Pick<Clinician, 'id' | 'fhirUserId'>
  readonly patient: string | undefined
  readonly launch: string
}

/** The grant that a code or refresh token is of, used or not, and whoever sends it: for the audit trail alone. */
export async function grantBehind(
  db: Kysely<Schema>,
  sent: { readonly code: string | undefined; readonly refreshToken: string | undefined },
): Promise<GrantBehind | undefined> {
  const id = (await grantOfCode(db, sent.code)) ?? (await grantOfRefreshToken(db, sent.refreshToken))
  if (id === undefined) return undefined
  const row = await db
    .selectFrom('grant')
    .innerJoin('clinician', 'clinician.id', 'grant.clinician_id')
    .select(['clinician.id', 'fhir_user_id', 'patient_id'])
    .where('grant.id', '=', id)
    .executeTakeFirst()
  return (
    row && {
      clinician: { id: row.id, fhirUserId: row.fhir_user_id },
      patient: row.patient_id ?? undefined,
      launch: id,
    }
  )
}

async function grantOfCode(db: Kysely<Schema>, code: string | undefined): Promise<string | undefined> {
  if (code === undefined) return undefined
  const found = await db
    .selectFrom('authorization_code')
    .select('grant_id')
    .where('code_hash', '=', sha256(code))
    .executeTakeFirst()
  return found?.grant_id
}

async function grantOfRefreshToken(
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
