import assert from 'node:assert/strict'
import { sql } from 'kysely'
import { createFhirAudit, noAudit, sweepAudit } from '../../../src/audit/index.ts'
import { Work } from '../../../src/fhir/index.ts'
import { fullAccess } from '../../../src/smart/index.ts'
import { createSealer, type Store } from '../../../src/store/index.ts'
import type { DataSet, Request } from '../measure.ts'

const BASE = 'http://fhir.test/fhir'
const DAY = 86_400_000
const DAYS = 1095
const END = Date.UTC(2026, 0, 1)
const sealer = createSealer('a secret of the benchmark')

/** Every search of the audit trail, whatever its number of records: by patient, kind, user, app, launch and date. */
const QUERIES = [
  '_count=20',
  '_count=20&_page=MIDDLE',
  '_count=20&_sort=date',
  '_count=20&date=2024-06',
  '_count=20&patient=p7',
  '_count=20&patient=p7&date=ge2024-01-01&_sort=date',
  '_count=20&patient=frequent&_page=MIDDLE',
  '_count=20&subtype=register',
  '_count=20&subtype=delete',
  '_count=20&subtype=read&_page=MIDDLE',
  '_count=20&action=D&outcome=8',
  '_count=20&agent=Practitioner/u7',
  '_count=20&agent:identifier=urn:sallyport:client-id|app3&_page=MIDDLE',
  '_count=20&agent:identifier=urn:sallyport:client-id|rare',
  '_count=20&agent:identifier=urn:sallyport:client-id|app3&subtype=register',
  '_count=20&entity:identifier=urn:sallyport:launch-id|l7',
  '_count=20&address=nowhere',
  '_summary=count',
  '_summary=count&patient=p7',
]

/** Higher limits: the small data set has fewer records than a page or a count may read. */
const FEWER: Readonly<Record<string, number>> = {
  '_summary=count&agent:identifier=urn:sallyport:client-id|app3': 3,
  '_count=20&outcome=8&_page=MIDDLE': 12,
}

export function openTrail(store: Store): DataSet {
  const audit = createFhirAudit({ auditor: noAudit, store, fhirBaseUrl: BASE })
  const middle = `${END - (DAYS * DAY) / 2}.0`
  const search = async (query: string) => {
    const found = await audit.serve({
      work: new Work(),
      interaction: {
        kind: 'search-type',
        type: 'AuditEvent',
        params: [...new URLSearchParams(query.replace('MIDDLE', middle))],
      },
      access: fullAccess,
      panelMembers: async () => ({ includes: () => true }),
    })
    assert.ok('body' in found, JSON.stringify(found))
  }
  const requests: Readonly<Record<string, Request>> = {
    ...Object.fromEntries(QUERIES.map(query => [query, { send: () => search(query) }])),
    ...Object.fromEntries(
      Object.entries(FEWER).map(([query, limit]) => [query, { send: () => search(query), limit }]),
    ),
    'a sweep of no old record': { send: () => sweepNothing(store) },
  }
  return { requests, close: () => store.close() }
}

/** The first sweep seals all records. */
async function sweepNothing(store: Store): Promise<void> {
  assert.equal(await sweepAudit(store, sealer, { days: DAYS + 1 }, END), 0)
}

/**
 * Records of three years, unless there are some. Each patient, user and launch has 50 of them, `frequent` a hundredth
 * of all, and each of 20 apps as many as the others. Twenty records have a rare kind, interaction or app.
 */
export async function fillTrail(store: Store, size: number): Promise<void> {
  const { db, dialect } = store
  if (await db.selectFrom('audit_event').select('id').limit(1).executeTakeFirst()) return
  const numbers =
    dialect === 'sqlite'
      ? sql`with recursive number (i) as (select 0 union all select i + 1 from number where i < ${size - 1})`
      : sql`with number (i) as (select generate_series(0::bigint, ${sql.lit(size - 1)}))`
  const text = (value: string) => sql.raw(dialect === 'sqlite' ? `(${value})` : `(${value})::text`)
  const groups = sql.lit(size / 50)
  const rare = sql.lit(size / 20)
  await sql`insert into audit_event (at, server, kind, interaction, allowed, status, method, request, resource_type,
      resource_id, patient_id, patients, client_id, subject, fhir_user, decided_by, launch_id, request_id, address)
    ${numbers}
    select ${sql.lit(END - DAYS * DAY)} + i * (${sql.lit(DAYS * DAY)} / ${sql.lit(size)}), 'fhir',
      case when i % ${rare} = 7 then 'register' when i % 10 = 3 then 'token' else 'fhir' end,
      case when i % ${rare} = 8 then 'delete' when i % 3 = 0 then 'search-type' else 'read' end,
      i % 100 <> 9, case when i % 100 = 9 then 403 when i % 1000 = 11 then 503 else 200 end, 'GET', 'Observation/1',
      'Observation', '1',
      case when i % 20 = 4 then null when i % 100 = 5 then 'frequent' else 'p' || ${text(`i * 7919 % ${size / 50}`)} end,
      case when i % 20 = 4 then ' p' || ${text(`i % ${size / 50}`)} || ' p' || ${text(`(i + 1) % ${size / 50}`)} || ' * ' end,
      case when i % ${rare} = 9 then 'rare' else 'app' || ${text('i % 20')} end, 'c1',
      'Practitioner/u' || ${text(`i * 104729 % ${size / 50}`)}, 'user/*.rs', 'l' || ${text(`i / 50 % ${size / 50}`)},
      'r' || ${text('i')}, '10.0.0.1'
    from number where ${groups} > 0`.execute(db)
  await sweepNothing(store)
}
