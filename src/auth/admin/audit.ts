import { setImmediate as yieldTurn } from 'node:timers/promises'
import { type Static, Type } from '@sinclair/typebox'
import {
  type AuditEventOptions,
  findPage,
  type KeptRecord,
  openEventIds,
  type RecordFilter,
  type TrailPosition,
  toAuditEvent,
} from '../../audit/index.ts'
import { DAY_MS, isFailure } from '../../core/index.ts'
import { formatCsvRow } from '../../web/index.ts'
import { LIMITS } from '../base/limits.ts'
import type { Parameters } from '../base/request.ts'
import {
  type Admin,
  AdminFailure,
  type ListPage,
  type Operation,
  type PageRequest,
  recordAction,
} from './action.ts'
import { CLOSED, defineEndpoint, PAGE_QUERY, PageOf, StreamedText, Time, toPage } from './endpoint.ts'

export const LIST_RECORDS: Operation = { name: 'audit list', signIn: 'never asks' }
export const SHOW_RECORD: Operation = { name: 'audit show', signIn: 'never asks' }
const EXPORT_RECORDS: Operation = { name: 'audit export', signIn: 'never asks' }

/** Records that are read and written without a pause. */
const PAGE = 100

type ExportOptions = AuditEventOptions

/** NDJSON has AuditEvents, CSV the columns of the table. */
export const EXPORT_FORMATS = {
  ndjson: {
    type: 'application/x-ndjson; charset=utf-8',
    head: '',
    format: (record: KeptRecord, options: ExportOptions) =>
      `${JSON.stringify(toAuditEvent(record, options))}\n`,
  },
  csv: { type: 'text/csv; charset=utf-8', head: `${listColumns().join(',')}\r\n`, format: formatCsv },
} as const

export type ExportFormat = keyof typeof EXPORT_FORMATS

/** Lists audit records, newest first. A page may have fewer than `limit`, and others may follow. */
export async function listRecords(
  { store }: Pick<Admin, 'store'>,
  { after, limit, ...filter }: RecordFilter & PageRequest,
): Promise<ListPage<KeptRecord>> {
  const found = await findPage(store, { ...filter, after: readPosition(after), limit: limit + 1 })
  const items = found.records.slice(0, limit)
  const last = found.records.length > limit ? items.at(-1) : found.next
  return { items, next: last && formatPosition(last) }
}

function formatPosition({ at, id }: TrailPosition): string {
  return `${at}.${id}`
}

function readPosition(text: string | undefined): TrailPosition | undefined {
  const [, at, id] = /^(\d{1,15})\.(\d{1,15})$/.exec(text ?? '') ?? []
  return at === undefined ? undefined : { at: Number(at), id: Number(id) }
}

let exporting = 0

/** Exports audit records, newest first, in parts, and records the export. */
export async function exportRecords(
  admin: Admin,
  format: ExportFormat,
  { fhirBaseUrl, ...filter }: RecordFilter & Pick<ExportOptions, 'fhirBaseUrl'>,
): Promise<AsyncGenerator<string> | AdminFailure> {
  if (exporting >= LIMITS.exports) return new AdminFailure('unavailable', 'other exports are running')
  await recordAction(admin, { operation: EXPORT_RECORDS, target: format, after: { ...filter } })
  return writeRecords(admin, format, filter, { fhirBaseUrl, ids: await openEventIds(admin.store) })
}

async function* writeRecords(
  { store }: Pick<Admin, 'store'>,
  format: ExportFormat,
  filter: RecordFilter,
  options: ExportOptions,
): AsyncGenerator<string> {
  exporting++
  try {
    const { head, format: formatRecord } = EXPORT_FORMATS[format]
    yield head
    let after: TrailPosition | undefined
    for (let left: number = LIMITS.exportedRecords; left > 0; ) {
      const limit = Math.min(PAGE, left)
      const { records, next } = await findPage(store, { ...filter, after, limit })
      yield records.map(record => formatRecord(record, options)).join('')
      left -= records.length
      after = records.length === limit ? records.at(-1) : next
      if (!after) return
      // SQLite answers at once: without a pause, the export of a long trail would block every other request.
      await yieldTurn()
    }
  } finally {
    exporting--
  }
}

/** A record as JSON, without the members that have no value. */
function describeRecord(record: KeptRecord): Readonly<Record<string, unknown>> {
  const values = listColumns().map(name => [name, record[name]] as const)
  return {
    ...Object.fromEntries(values.filter(([, value]) => value !== null)),
    at: new Date(record.at).toISOString(),
    allowed: Boolean(record.allowed),
    ...(record.details !== null && { details: JSON.parse(record.details) }),
  }
}

function listColumns(): readonly (keyof KeptRecord)[] {
  return [
    ...(['id', 'at', 'server', 'kind', 'interaction', 'allowed', 'status', 'method', 'request'] as const),
    ...(['resource_type', 'resource_id', 'patient_id', 'patients', 'client_id', 'subject'] as const),
    ...(['fhir_user', 'decided_by', 'reason', 'launch_id', 'request_id', 'address', 'repeats'] as const),
    'details',
  ]
}

function formatCsv(record: KeptRecord): string {
  return formatCsvRow(
    listColumns().map(name => (name === 'at' ? new Date(record.at).toISOString() : record[name])),
  )
}

/** Records and grants of a client that are read for its last use. */
const READ_FOR_LAST_USE = 100

/** When clients last acted, by the audit trail and by their newest grants. */
export async function findLastUses(
  admin: Pick<Admin, 'store'>,
  clientIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const uses = await Promise.all(clientIds.map(async id => [id, await findLastUse(admin, id)] as const))
  return new Map(uses.flatMap(([id, at]) => (at === undefined ? [] : [[id, at] as const])))
}

async function findLastUse({ store }: Pick<Admin, 'store'>, clientId: string): Promise<number | undefined> {
  const trail = await store.trail.read()
  const recorded = await trail
    .selectFrom('audit_event')
    .select(['at', 'allowed'])
    .where('client_id', '=', clientId)
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(READ_FOR_LAST_USE)
    .execute()
  const grants = await store.db
    .selectFrom('grant')
    .select('last_used_at')
    .where('client_id', '=', clientId)
    .orderBy('created_at', 'desc')
    .limit(READ_FOR_LAST_USE)
    .execute()
  const times = [
    ...recorded.filter(({ allowed }) => allowed).map(({ at }) => at),
    ...grants.map(grant => grant.last_used_at),
  ]
  return times.length === 0 ? undefined : Math.max(...times)
}

/** The filters of the page, which are in its URL. */
export interface AuditView {
  readonly fields: Readonly<Record<Field, string>>
  readonly filter: RecordFilter
}

const FIELDS = ['kind', 'result', 'user', 'app', 'patient', 'launch', 'since', 'until'] as const
type Field = (typeof FIELDS)[number]

export function readAuditView(form: Parameters): AuditView {
  const read = (name: Field) => form.get(name)?.trim() ?? ''
  const fields = Object.fromEntries(FIELDS.map(name => [name, read(name)])) as Record<Field, string>
  const { kind, result, user, app, patient, launch, since, until } = fields
  return {
    fields,
    filter: {
      events: kind === '' ? undefined : [{ kind }],
      allowed: result === 'allowed' || result === 'refused' ? result === 'allowed' : undefined,
      users: user === '' ? undefined : [user],
      client: app === '' ? undefined : app,
      patients: patient === '' ? undefined : [patient.replace(/^Patient\//, '')],
      launch: launch === '' ? undefined : launch,
      since: readDay(since),
      before: addDay(readDay(until)),
    },
  }
}

/** Days are UTC days, as the times of the records. */
function readDay(text: string): number | undefined {
  const start = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(start) ? undefined : start
}

function addDay(start: number | undefined): number | undefined {
  return start === undefined ? undefined : start + DAY_MS
}

export function buildAuditQuery({ fields }: AuditView, after?: string): string {
  const query = new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== ''))
  if (after !== undefined) query.set('after', after)
  return query.size === 0 ? '' : `?${query}`
}

const Instant = Type.Optional(
  Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}(T|$)', description: 'A date, or a date and time.' }),
)

const FILTER = {
  since: Instant,
  before: Instant,
  kind: Type.Optional(Type.String({ description: 'For example `fhir`, `login`, `admin`.' })),
  outcome: Type.Optional(Type.Union([Type.Literal('allowed'), Type.Literal('refused')])),
  patient: Type.Optional(Type.String({ description: 'The id of a patient.' })),
  user: Type.Optional(Type.String({ description: 'For example `Practitioner/1`.' })),
  client_id: Type.Optional(Type.String()),
  launch: Type.Optional(Type.String()),
}

const AuditFilter = Type.Object(FILTER, CLOSED)

function readFilter(query: Static<typeof AuditFilter>): RecordFilter | AdminFailure {
  const { since, before, kind, outcome, patient, user, client_id, launch } = query
  const [from, until] = [since, before].map(text => (text === undefined ? undefined : Date.parse(text)))
  if (Number.isNaN(from) || Number.isNaN(until)) return new AdminFailure('invalid', 'a time is not valid')
  return {
    since: from,
    before: until,
    events: kind === undefined ? undefined : [{ kind }],
    allowed: outcome === undefined ? undefined : outcome === 'allowed',
    patients: patient === undefined ? undefined : [patient.replace(/^Patient\//, '')],
    users: user === undefined ? undefined : [user],
    client: client_id,
    launch,
  }
}

const AuditRecord = Type.Object(
  {
    id: Type.Integer(),
    at: Time,
    server: Type.String(),
    kind: Type.String(),
    allowed: Type.Boolean(),
    status: Type.Integer(),
  },
  { description: 'With the further columns that have a value.' },
)

export const auditEndpoints = [
  defineEndpoint({
    method: 'GET',
    path: '/audit',
    title: 'Audit records, newest first',
    description: 'A page may have fewer items than `limit`. The request is recorded too.',
    query: Type.Object({ ...FILTER, ...PAGE_QUERY }, CLOSED),
    result: PageOf(AuditRecord),
    operation: LIST_RECORDS,
    async handle({ admin, query: { after, limit, ...query } }) {
      const filter = readFilter(query)
      if (isFailure(filter)) return filter
      await recordAction(admin, { operation: LIST_RECORDS, after: query })
      const page = await listRecords(admin, { ...filter, after, limit })
      return toPage(page, describeRecord)
    },
  }),
  defineEndpoint({
    method: 'GET',
    path: '/audit/export',
    title: 'Audit records as a file, newest first',
    description: `At most ${LIMITS.exportedRecords} records: choose times for more. NDJSON has FHIR AuditEvents.`,
    query: Type.Object(
      { ...FILTER, format: Type.Union([Type.Literal('ndjson'), Type.Literal('csv')], { default: 'ndjson' }) },
      CLOSED,
    ),
    streams: Object.values(EXPORT_FORMATS).map(({ type }) => type),
    operation: EXPORT_RECORDS,
    async handle({ admin, context, query: { format, ...query } }) {
      const filter = readFilter(query)
      if (isFailure(filter)) return filter
      const { fhirBaseUrl } = context.settings
      const parts = await exportRecords(admin, format, { ...filter, fhirBaseUrl })
      return isFailure(parts) ? parts : new StreamedText(EXPORT_FORMATS[format].type, parts)
    },
  }),
]
