import { type RawBuilder, sql, type Transaction } from 'kysely'
import type { Auditor, AuditRecord } from '../../audit/index.ts'
import type { Schema, Store } from '../../store/index.ts'
import { formatFhirUser } from '../clinician.ts'
import { RECENT_SECONDS } from '../limits.ts'

/** Who administers: a clinician on the pages, a client at the API, the command line, or a developer in the lab. */
export type Actor =
  | {
      readonly kind: 'clinician'
      readonly id: string
      readonly fhirUserId: string
      /** When the clinician authenticated, in milliseconds. */
      readonly authTime: number
    }
  | { readonly kind: 'client'; readonly id: string }
  | { readonly kind: 'command' }
  | { readonly kind: 'developer'; readonly id: string; readonly fhirUserId: string }

/** The dependencies of every operation, and who performs it. */
export interface Admin {
  readonly store: Store
  readonly audit: Auditor
  readonly clock: () => number
  readonly actor: Actor
  /** Of the HTTP request. */
  readonly requestId?: string
  readonly address?: string
}

/** `not_found`, `conflict`: the state does not allow it. `reauthenticate`: see `requireRecentLogin`. */
export type AdminFailureCode = 'invalid' | 'not_found' | 'conflict' | 'reauthenticate' | 'unavailable'

/** An operation that changed nothing. The reason is the end of a sentence: `there is no client growth`. */
export class AdminFailure {
  readonly code: AdminFailureCode
  readonly reason: string
  constructor(code: AdminFailureCode, reason: string) {
    this.code = code
    this.reason = reason
  }

  get sentence(): string {
    return `${this.reason.charAt(0).toUpperCase()}${this.reason.slice(1)}.`
  }
}

/** The properties that changed. Undefined `before`: something was added; undefined `after`: it was removed. */
export interface Change {
  readonly before?: Properties | undefined
  readonly after?: Properties | undefined
}

/** Properties for the audit trail: never a secret, a hash of one or a patient's name. */
export type Properties = Readonly<Record<string, unknown>>

/** `action` is named like the command: `client disable growth`. */
type Changed<Result> = Change & { readonly action: string; readonly result: Result }

/**
 * Makes a change and its audit record in one transaction (ADMIN-3). `change` returns a failure before it writes anything.
 */
export function perform<Result>(
  admin: Admin,
  change: (trx: Transaction<Schema>) => Promise<Changed<Result> | AdminFailure>,
): Promise<Result | AdminFailure> {
  return admin.store.db.transaction().execute(async trx => {
    const changed = await change(trx)
    if (changed instanceof AdminFailure) return changed
    await recordAction(admin, changed.action, changed, trx)
    return changed.result
  })
}

function hasValues(properties: Properties = {}): boolean {
  return Object.values(properties).some(value => value !== undefined)
}

/** Records an action of an administrator, in the transaction of its change if it has one. */
export function recordAction(
  admin: Admin,
  action: string,
  { before, after }: Change = {},
  trx?: Transaction<Schema>,
): Promise<void> {
  const record: AuditRecord = {
    ...{ at: admin.clock(), server: 'auth', kind: 'admin', allowed: true, status: 200 },
    ...describeActor(admin.actor),
    request: action,
    requestId: admin.requestId,
    address: admin.address,
    ...((hasValues(before) || hasValues(after)) && { details: shortenChange({ before, after }) }),
  }
  return trx ? admin.audit.recordIn(trx, record) : admin.audit.record(record)
}

function describeActor(actor: Actor): Pick<AuditRecord, 'method' | 'client' | 'subject' | 'fhirUser'> {
  switch (actor.kind) {
    case 'clinician':
      return { method: 'admin', subject: actor.id, fhirUser: formatFhirUser(actor.fhirUserId) }
    case 'client':
      return { method: 'admin-api', client: actor.id, subject: actor.id }
    case 'command':
      return { method: 'sallyport' }
    case 'developer':
      return { method: 'lab', subject: actor.id, fhirUser: formatFhirUser(actor.fhirUserId) }
  }
}

const LONGEST_CHANGE = 7_000
const LONGEST_VALUE = 100

/** The audit trail drops details that are too long. */
function shortenChange(change: Change): Change {
  const isLong = JSON.stringify(change).length > LONGEST_CHANGE
  return isLong ? JSON.parse(JSON.stringify(change, shortenValue)) : change
}

function shortenValue(_name: string, value: unknown): unknown {
  return typeof value === 'string' && value.length > LONGEST_VALUE
    ? `${value.slice(0, LONGEST_VALUE)}…`
    : value
}

/** The properties that differ. */
export function compare(before: Properties, after: Properties): Change {
  const names = Object.keys(after).filter(
    name => JSON.stringify(before[name]) !== JSON.stringify(after[name]),
  )
  const pick = (from: Properties) => Object.fromEntries(names.map(name => [name, from[name] ?? null]))
  return { before: pick(before), after: pick(after) }
}

/**
 * Keys, secrets and administrators change only soon after the administrator authenticated (ADMIN-4). The token of a client
 * lives for five minutes, and the command line needs access to the machine.
 */
export function requireRecentLogin({
  actor,
  clock,
}: Pick<Admin, 'actor' | 'clock'>): AdminFailure | undefined {
  if (actor.kind !== 'clinician' || clock() - actor.authTime < RECENT_SECONDS * 1000) return undefined
  return new AdminFailure(
    'reauthenticate',
    'keys, secrets and administrators change only soon after a sign-in',
  )
}

/** A page of a list. `next` is the position after its last item. */
export interface ListPage<Item> {
  readonly items: readonly Item[]
  readonly next: string | undefined
}

export interface PageRequest {
  readonly after?: string | undefined
  readonly limit: number
}

/** Takes the first items of one more than the page has. */
export function cutPage<Item>(
  items: readonly Item[],
  { limit }: PageRequest,
  getPosition: (item: Item) => string,
): ListPage<Item> {
  const shown = items.slice(0, limit)
  const last = shown.at(-1)
  return { items: shown, next: items.length > limit && last !== undefined ? getPosition(last) : undefined }
}

/** Whether one of the columns contains a text, without regard to case. */
export function containsText(columns: readonly string[], text: string): RawBuilder<boolean> {
  const pattern = `%${text.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`
  const conditions = columns.map(column => sql`lower(${sql.ref(column)}) like ${pattern} escape '\\'`)
  return sql<boolean>`(${sql.join(conditions, sql` or `)})`
}
