import type { Insertable } from 'kysely'
import type { AuditRecord } from '../audit-record/index.ts'
import type { Schema } from '../store/index.ts'

export type AuditRow = Insertable<Schema['audit_event']>

// Limits every column, whatever a caller sends.
const MAX_CHARACTERS = 2000
const MAX_DETAILS = 8000

/** Throws if a record does not match its type: it must not reach a shared commit. */
export function toRow(record: AuditRecord, deliveryId: string | null = null): AuditRow {
  if (!Number.isSafeInteger(record.at) || !Number.isSafeInteger(record.status))
    throw failMalformed('at or status')
  if (typeof record.allowed !== 'boolean') throw failMalformed('allowed')
  return {
    at: record.at,
    server: record.server,
    kind: record.kind,
    interaction: toStorable(record.interaction),
    allowed: record.allowed,
    status: record.status,
    method: toStorable(record.method),
    request: toStorable(record.request),
    resource_type: toStorable(record.type),
    resource_id: toStorable(record.id),
    patient_id: toStorable(record.patient),
    patients: record.patients === undefined ? null : replaceUnstorable(` ${record.patients.join(' ')} `),
    client_id: toStorable(record.client),
    subject: toStorable(record.subject),
    fhir_user: toStorable(record.fhirUser),
    decided_by: toStorable(record.by),
    reason: toStorable(record.reason),
    launch_id: toStorable(record.launch),
    request_id: toStorable(record.requestId),
    address: toStorable(record.address),
    delivery_id: deliveryId,
    token_id: toStorable(record.token),
    repeats: record.repeats ?? null,
    details: record.details === undefined ? null : toStorableJson(record.details),
  }
}

/** Incomplete JSON is of no use. */
function toStorableJson(details: object): string | null {
  const text = JSON.stringify(details)
  return text.length <= MAX_DETAILS ? text : null
}

function failMalformed(member: string): TypeError {
  return new TypeError(`Cannot store audit record: its ${member} is not valid`)
}

function toStorable(text: string | undefined): string | null {
  if (text === undefined) return null
  if (typeof text !== 'string') throw failMalformed('text')
  return replaceUnstorable(text.length <= MAX_CHARACTERS ? text : `${text.slice(0, MAX_CHARACTERS)}…`)
}

/** PostgreSQL stores neither NUL nor an unpaired surrogate. */
function replaceUnstorable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd')
}
