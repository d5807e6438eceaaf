import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Delivery } from '../../audit/index.ts'
import { isStatus, isWithin, OPTIONAL_MEMBERS, type SentRecord } from '../../audit-record/index.ts'
import { LruMap } from '../../cache/index.ts'
import { fail, isFailure, isRecord, MINUTE_MS } from '../../core/index.ts'
import { type Fault, makeFault } from '../base/fault.ts'
import { LIMITS } from '../base/limits.ts'
import { paths } from '../base/paths.ts'
import { forbidCaching, readJson, sendOAuthError } from '../base/request.ts'
import { AUDIT_SCOPE } from '../words/program-scopes.ts'
import { authenticateBearer, type BearerFailure, sendBearerError } from './access-token.ts'
import { findClient } from './clients/client.ts'
import type { AuthContext } from './context.ts'

interface RefusedRecord {
  readonly id: string
  readonly reason: string
}

/**
 * `POST /audit-records`: other FHIR servers, which use the interceptor as a library, add records of their requests to the
 * trail (AUDIT-24). The record names the client that sent it. A record that is sent twice is stored once.
 */
export function addAuditRecordRoutes(app: FastifyInstance, context: AuthContext): void {
  const senders = new WeakMap<FastifyRequest, string>()
  const takeRecords = createRate(context.clock)
  app.post(paths.auditRecords, {
    bodyLimit: LIMITS.auditRecordsBytes,
    onRequest: [
      forbidCaching,
      // Before the body is read.
      async (request, reply) => {
        const sender = await findSender(context, request)
        if (isFailure(sender)) return sendBearerError(reply, sender.reason, AUDIT_SCOPE)
        if (!takeRecords(sender, LIMITS.auditRequestCost)) return sendTooMany(reply)
        return void senders.set(request, sender)
      },
    ],
    async handler(request, reply) {
      const sender = senders.get(request)
      if (sender === undefined) throw new Error('Cannot take audit records without a sender')
      const json = readJson(request)
      if (isFailure(json)) return sendOAuthError(request, reply, json)
      const sent = readBatch(context, json.body)
      if (isFailure(sent)) return sendInvalid(reply, sent)
      const more = Math.max(0, sent.length - LIMITS.auditRequestCost)
      if (!takeRecords(sender, more)) return sendTooMany(reply)
      return reply.send({ refused: await storeRecords(context, sender, sent) })
    },
  })
}

/** Only the token of a client that still has the scope, and no other. */
async function findSender(context: AuthContext, request: FastifyRequest): Promise<string | BearerFailure> {
  const { store, settings } = context
  const token = await authenticateBearer(context, request.headers.authorization, settings.issuerUrl)
  if (isFailure(token)) return token
  const client = await findClient(store.db, context, token.clientId)
  return !token.grant && token.scope === AUDIT_SCOPE && client?.scope === AUDIT_SCOPE
    ? client.id
    : fail({ reason: 'insufficient-scope' })
}

/** Returns the records with their ids, which are not read yet. */
function readBatch(
  { settings, audit }: AuthContext,
  body: unknown,
): readonly Readonly<Record<string, unknown>>[] | Fault {
  if (!audit.keeps) return makeFault('trail-not-kept')
  if (!isRecord(body) || !Array.isArray(body.records)) return makeFault('batch-malformed')
  const { issuer, fhirBaseUrl, records } = body
  if (issuer !== settings.issuerUrl)
    return makeFault('batch-of-another-issuer', { expected: settings.issuerUrl })
  if (fhirBaseUrl !== settings.fhirBaseUrl)
    return makeFault('batch-of-another-fhir-server', { expected: settings.fhirBaseUrl })
  if (records.length > LIMITS.auditRecords) return makeFault('batch-too-long', { most: LIMITS.auditRecords })
  return records.every(it => isRecord(it) && typeof it.id === 'string' && SENT_ID.test(it.id))
    ? records
    : makeFault('batch-without-ids')
}

const SENT_ID = /^[\w-]{1,64}$/

/** Returns the records that were not stored. */
async function storeRecords(
  context: AuthContext,
  sender: string,
  sent: readonly Readonly<Record<string, unknown>>[],
): Promise<readonly RefusedRecord[]> {
  const read = sent.map(({ id, record }) => ({ id: String(id), record: readRecord(record, context.clock()) }))
  const launches = read.flatMap(({ record }) => (isFailure(record) ? [] : (record.launch ?? [])))
  const owners = await findOwners(context, launches)
  const deliveries: Delivery[] = []
  const refused: RefusedRecord[] = []
  for (const { id, record } of read) {
    const fault = isFailure(record) ? record : checkOwner(record, owners)
    if (isFailure(record) || fault) refused.push({ id, reason: fault?.text ?? '' })
    else
      deliveries.push({
        id: `${sender}/${id}`,
        record: { ...record, server: 'fhir', kind: 'fhir', details: { reportedBy: sender } },
      })
  }
  if (deliveries.length > 0) await context.audit.redeliver(deliveries)
  return refused
}

interface Owner {
  readonly client: string
  readonly subject: string
}

/** The app and user of each launch that this server still knows. */
async function findOwners(
  { store }: AuthContext,
  launches: readonly string[],
): Promise<ReadonlyMap<string, Owner>> {
  if (launches.length === 0) return new Map()
  const grants = await store.db
    .selectFrom('grant')
    .select(['id', 'client_id', 'clinician_id'])
    .where('id', 'in', [...new Set(launches)])
    .execute()
  return new Map(grants.map(it => [it.id, { client: it.client_id, subject: it.clinician_id }]))
}

/** A sender cannot say that another app or user did it. */
function checkOwner(
  { launch, client, subject }: SentRecord,
  owners: ReadonlyMap<string, Owner>,
): Fault | undefined {
  const owner = launch === undefined ? undefined : owners.get(launch)
  return owner && (owner.client !== client || owner.subject !== subject)
    ? makeFault('record-of-another')
    : undefined
}

type Check = (value: unknown, now: number) => boolean

const REQUIRED: Readonly<Record<string, Check>> = {
  // A record of the future or of long ago would change what is kept, and for how long.
  at: (value, now) => isWithin(now - LIMITS.auditRecordsLateMs, now + LIMITS.auditRecordsEarlyMs)(value),
  allowed: value => typeof value === 'boolean',
  status: isStatus,
}

function readRecord(value: unknown, now: number): SentRecord | Fault {
  if (!isRecord(value)) return makeFault('record-not-an-object')
  const unknown = Object.keys(value).find(
    name => !Object.hasOwn(REQUIRED, name) && !Object.hasOwn(OPTIONAL_MEMBERS, name),
  )
  if (unknown !== undefined)
    return makeFault('record-member-unknown', { name: JSON.stringify(unknown.slice(0, 40)) })
  const wrong =
    Object.keys(REQUIRED).find(name => !REQUIRED[name]?.(value[name], now)) ??
    Object.keys(value).find(name => OPTIONAL_MEMBERS[name]?.(value[name]) === false)
  return wrong === undefined
    ? (value as unknown as SentRecord)
    : makeFault('record-member-malformed', { name: wrong })
}

/** Counts the records of each sender in a minute, a request as some of them, in this process. Returns whether it may send so many more. */
function createRate(clock: () => number): (sender: string, records: number) => boolean {
  const counts = new LruMap<{ readonly endsAt: number; readonly records: number }>(LIMITS.auditSenders)
  return (sender, records) => {
    const now = clock()
    const known = counts.get(sender)
    const counted = known && now < known.endsAt ? known : { endsAt: now + MINUTE_MS, records: 0 }
    const sum = counted.records + records
    if (sum > LIMITS.auditRecordsPerMinute) return false
    counts.set(sender, { endsAt: counted.endsAt, records: sum })
    return true
  }
}

/** Errors have the format of RFC 6749, 5.2. */
function sendInvalid(reply: FastifyReply, { text }: Fault): FastifyReply {
  return reply.code(400).send({ error: 'invalid_request', error_description: `${text}.` })
}

function sendTooMany(reply: FastifyReply): FastifyReply {
  const text = `At most ${LIMITS.auditRecordsPerMinute} records a minute are taken from a client.`
  return reply
    .code(429)
    .header('retry-after', '60')
    .send({ error: 'temporarily_unavailable', error_description: text })
}
