import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { Insertable } from 'kysely'
import { seedSampleAccounts } from '../../src/auth/index.ts'
import { storeOrigins } from '../../src/auth/oauth/clients/origins.ts'
import { stampRows } from '../../src/auth/testing/stamp.ts'
import { INCLUDED_RESOURCES, TRANSACTION_ENTRIES } from '../../src/fhir/limits.ts'
import { openStore, type Schema, type Store } from '../../src/store/index.ts'
import { APPS, type MeasuredServers } from '../support/measured-servers.ts'

const OBSERVATIONS = 1_000
const VITAL_SIGNS = {
  system: 'http://terminology.hl7.org/CodeSystem/observation-category',
  code: 'vital-signs',
}
const SEEDED_APPS = 300
const AUDIT_RECORDS = 20_000
/** Of one patient. */
const ACCESSES = 20_000
/** Few enough for one statement. */
const AT_ONCE = 500

/**
 * A patient with 1,000 Observations, each derived from the one before, with as many categories as a scope may name, and
 * with 5,000 small resources.
 */
export async function loadResources({ fhirUrl, backEnd }: MeasuredServers): Promise<void> {
  const subject = { reference: 'Patient/grown' }
  const write = async (method: string, path: string, resource: object) => {
    const headers = { ...backEnd, 'content-type': 'application/fhir+json' }
    const sent = await fetch(fhirUrl + path, { method, headers, body: JSON.stringify(resource) })
    assert.ok(sent.status < 300, await sent.text())
  }
  await write('PUT', '/Patient/grown', { resourceType: 'Patient', id: 'grown' })
  const condition = { resourceType: 'Condition', id: 'grown', subject, code: { text: 'x' } }
  await write('PUT', '/Condition/grown', { ...condition, note: [{ text: 'x' }] })
  const codes = Array.from({ length: 40 }, (_, at) => ({ system: 'urn:x', code: `c${at}` }))
  const category = [{ coding: [VITAL_SIGNS, ...codes] }]
  const entries = Array.from({ length: OBSERVATIONS }, (_, at) => ({
    request: { method: 'PUT', url: `Observation/chain-${at}` },
    resource: {
      resourceType: 'Observation',
      id: `chain-${at}`,
      status: 'final',
      subject,
      category,
      code: { text: 'x' },
      valueQuantity: { value: at + 0.5 },
      ...(at > 0 && { derivedFrom: [{ reference: `Observation/chain-${at - 1}` }] }),
    },
  }))
  for (let from = 0; from < OBSERVATIONS; from += 100) {
    const entry = entries.slice(from, from + 100)
    await write('POST', '', { resourceType: 'Bundle', type: 'transaction', entry })
  }
  // As many as a page may bring along, and one more of another patient.
  await write('PUT', '/Patient/other', { resourceType: 'Patient', id: 'other' })
  const basics = Array.from({ length: INCLUDED_RESOURCES + 1 }, (_, at) => ({
    request: { method: 'POST', url: 'Basic' },
    resource: {
      resourceType: 'Basic',
      code: { text: 'x' },
      subject: at < INCLUDED_RESOURCES ? subject : { reference: 'Patient/other' },
    },
  }))
  for (let from = 0; from < basics.length; from += TRANSACTION_ENTRIES) {
    const entry = basics.slice(from, from + TRANSACTION_ENTRIES)
    await write('POST', '', { resourceType: 'Bundle', type: 'transaction', entry })
  }
  // Old versions, whose search values are not kept.
  for (let times = 0; times < 2; times++)
    await write('POST', '', { resourceType: 'Bundle', type: 'batch', entry: entries.slice(0, 200) })
}

/** The sample accounts, a few hundred apps with as many URLs as they may have, which the clinician gave access, and many audit records. */
export async function loadStore({ folder }: MeasuredServers): Promise<void> {
  const store = await openStore(`sqlite:${join(folder, 'data/sallyport.db')}`)
  await seedSampleAccounts(store)
  await store.db.transaction().execute(async db => {
    const { id: userId } = await db
      .selectFrom('clinician')
      .select('id')
      .where('username', '=', 'clinician')
      .executeTakeFirstOrThrow()
    for (const [id, app] of Object.entries(APPS))
      await addClient(db, id, { redirect_uris: [app.redirectUri], scope: app.scope, first_party: true })
    for (let at = 0; at < SEEDED_APPS; at++) await addSeededApp(db, at, userId)
    await stampRows(db)
    const records = [
      ...Array.from({ length: AUDIT_RECORDS }, (_, at) => auditRecord(at)),
      ...Array.from({ length: ACCESSES }, (_, at) => makeAccess(at)),
    ]
    for (let from = 0; from < records.length; from += AT_ONCE)
      await db
        .insertInto('audit_event')
        .values(records.slice(from, from + AT_ONCE))
        .execute()
  })
  await store.close()
}

type Db = Store['db']

async function addSeededApp(db: Db, at: number, userId: string): Promise<void> {
  const [client_id, now] = [`seeded-${at}`, Date.now()]
  const redirect_uris = Array.from({ length: 20 }, (_, uri) => `https://app-${at}-${uri}.example/callback`)
  const scope = 'launch offline_access patient/*.rs'
  await addClient(db, client_id, { redirect_uris, scope, first_party: false, approved: at % 2 === 0 })
  const grants = Array.from({ length: 5 }, (_, patient) => ({
    id: `grant-${at}-${patient}`,
    client_id,
    clinician_id: userId,
    login_id_hash: null,
    scope: 'offline_access patient/*.rs',
    patient_id: `patient-${patient}`,
    encounter_id: null,
    need_patient_banner: null,
    context: null,
    auth_time: now,
    created_at: now,
    last_used_at: now,
    revoked_at: null,
  }))
  await db.insertInto('grant').values(grants).execute()
}

async function addClient(
  db: Db,
  client_id: string,
  {
    redirect_uris,
    approved = true,
    ...app
  }: {
    readonly redirect_uris: readonly string[]
    readonly scope: string
    readonly first_party: boolean
    readonly approved?: boolean
  },
): Promise<void> {
  await db
    .insertInto('client')
    .values({
      client_id,
      name: client_id,
      description: null,
      logo_url: `https://${client_id}.example/logo.png`,
      auth_method: 'none',
      secret_hash: null,
      jwks: null,
      jwks_url: null,
      ...app,
      approved,
      redirect_uris: JSON.stringify(redirect_uris),
      launch_url: `https://${client_id}.example/launch`,
      created_at: Date.now(),
    })
    .execute()
  await storeOrigins(db, client_id)
}

/** Each is a visit of its own. */
function makeAccess(at: number): Insertable<Schema['audit_event']> {
  const record = { ...auditRecord(1), at: Date.now() - at * 1000, patient_id: 'patient-1' }
  return {
    ...record,
    subject: `account-${at}`,
    fhir_user: `Practitioner/${at % 100}`,
    decided_by: 'user/*.rs',
  }
}

function auditRecord(at: number): Insertable<Schema['audit_event']> {
  return {
    at: Date.now() - at,
    server: 'fhir',
    kind: 'fhir',
    interaction: 'read',
    allowed: at % 3 > 0,
    status: at % 3 > 0 ? 200 : 403,
    method: 'GET',
    request: `Observation/${at}`,
    resource_id: `${at}`,
    resource_type: 'Observation',
    patient_id: `patient-${at % 50}`,
    client_id: `seeded-${at % SEEDED_APPS}`,
    patients: null,
    subject: null,
    fhir_user: null,
    decided_by: null,
    reason: null,
    launch_id: null,
    request_id: null,
    address: null,
    repeats: null,
    delivery_id: null,
  }
}
