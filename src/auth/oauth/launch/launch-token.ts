import type { Kysely, Selectable } from 'kysely'
import { createRandomToken, prepareInsert, prepareQuery, type Schema, sha256 } from '../../../store/index.ts'
import { LIFETIME } from '../../base/limits.ts'
import type { ExtraContext } from './options.ts'

/** The context of a launch, and the client and user that may use it. */
export interface Launch {
  readonly patientId: string
  readonly encounterId: string | undefined
  readonly needPatientBanner: boolean
  readonly extraContext: ExtraContext
  readonly clientId: string
  readonly username: string
  readonly fhirBaseUrl: string
  /** Only hooks read it. */
  readonly extension?: string | undefined
  /** Identifies the launch in the audit trail, and becomes the id of the grant. */
  readonly id: string
}

/** Creates a launch token of 32 random bytes, valid for 5 minutes. Only its SHA-256 is stored. */
export async function createLaunchToken(db: Kysely<Schema>, launch: Launch, now: number): Promise<string> {
  const token = createRandomToken()
  await insertLaunchToken(db, {
    token_hash: sha256(token),
    patient_id: launch.patientId,
    encounter_id: launch.encounterId ?? null,
    need_patient_banner: launch.needPatientBanner,
    client_id: launch.clientId,
    clinician_username: launch.username,
    fhir_base_url: launch.fhirBaseUrl,
    launch_id: launch.id,
    extension: launch.extension ?? null,
    context: Object.keys(launch.extraContext).length === 0 ? null : JSON.stringify(launch.extraContext),
    created_at: now,
    expires_at: now + LIFETIME.launchToken,
    used_at: null,
  })
  return token
}

const insertLaunchToken = prepareInsert('launch_token')

export interface FoundLaunch extends Launch {
  readonly expiresAt: number
  readonly usedAt: number | undefined
}

export async function findLaunch(db: Kysely<Schema>, tokenHash: string): Promise<FoundLaunch | undefined> {
  const [row] = (await selectLaunchToken(db, { tokenHash })).rows
  return row && toLaunch(row)
}

const selectLaunchToken = prepareQuery((db, { tokenHash }: { tokenHash: string }) =>
  db.selectFrom('launch_token').selectAll().where('token_hash', '=', tokenHash),
)

/** Consumes the token by compare-and-set: only one of several attempts gets the launch. */
export async function consumeLaunchToken(
  db: Kysely<Schema>,
  tokenHash: string,
  now: number,
): Promise<Launch | undefined> {
  const [row] = (await setLaunchTokenUsed(db, { tokenHash, now })).rows
  return row && toLaunch(row)
}

const setLaunchTokenUsed = prepareQuery((db, { tokenHash, now }: { tokenHash: string; now: number }) =>
  db
    .updateTable('launch_token')
    .set({ used_at: now })
    .where('token_hash', '=', tokenHash)
    .where('used_at', 'is', null)
    .returningAll(),
)

function toLaunch(row: Selectable<Schema['launch_token']>): FoundLaunch {
  return {
    patientId: row.patient_id,
    encounterId: row.encounter_id ?? undefined,
    needPatientBanner: row.need_patient_banner,
    extraContext: row.context === null ? {} : JSON.parse(row.context),
    clientId: row.client_id,
    username: row.clinician_username,
    fhirBaseUrl: row.fhir_base_url,
    id: row.launch_id,
    extension: row.extension ?? undefined,
    expiresAt: row.expires_at,
    usedAt: row.used_at ?? undefined,
  }
}
