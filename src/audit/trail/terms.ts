import { type RawBuilder, sql } from 'kysely'
import type { TargetType } from '../../audit-record/index.ts'
import { containsText } from '../../store/index.ts'

/** A kind of event and, for a FHIR request, its interaction. */
export interface EventKind {
  readonly kind: string
  readonly interaction?: string | null | undefined
}

/** R4 AuditEventOutcome: 0 success, 4 minor failure, 8 serious failure. */
export type Outcome = '0' | '4' | '8'

export interface RecordFilter {
  readonly ids?: readonly number[] | undefined
  readonly events?: readonly EventKind[] | undefined
  readonly since?: number | undefined
  readonly before?: number | undefined
  readonly allowed?: boolean | undefined
  readonly outcomes?: readonly Outcome[] | undefined
  /** About at least one of these patients. */
  readonly patients?: readonly string[] | undefined
  /** Filed under this patient, alone or among others. */
  readonly filedUnder?: string | undefined
  /** About one of these patients and no other. */
  readonly onlyPatients?: readonly string[] | undefined
  /** `Practitioner/1` */
  readonly users?: readonly string[] | undefined
  /** Whoever acted, by any of these. */
  readonly actor?: ActorFilter | undefined
  readonly clients?: readonly string[] | undefined
  /** Changes to any of these. */
  readonly target?: TargetFilter | undefined
  readonly otherThanClient?: string | undefined
  readonly otherThanStatus?: readonly number[] | undefined
  readonly launch?: string | undefined
  /** No index has it. */
  readonly address?: string | undefined
  /** The request id of a refused or failed request. */
  readonly reference?: string | undefined
}

export interface ActorFilter {
  /** The `sub` of the token. */
  readonly subjects?: readonly string[]
  readonly fhirUsers?: readonly string[]
  /** Users of operating systems, who ran commands. */
  readonly operators?: readonly string[]
}

/** Accounts, apps and grants that somebody changed. */
export interface TargetFilter {
  readonly accounts?: readonly string[]
  readonly clients?: readonly string[]
  readonly grants?: readonly string[]
  /** The requests of records before 0.3, which have no other target. */
  readonly requests?: readonly string[]
}

type Condition = RawBuilder<boolean>

/** Adjacent rows of an index that are in the order of the trail. */
export interface IndexRange {
  readonly table: 'audit_event' | 'audit_event_patient'
  readonly condition: Condition
}

/** One condition of a filter. */
export interface Term {
  /** On a record that is named `event`. */
  readonly condition: Condition
  /** The rows, in indexes. Undefined if no index has them. */
  readonly ranges?: readonly IndexRange[]
  /** The ranges also have other rows. */
  readonly hasOthers?: true
  /** The caller may see these rows only, so that the position of no other row may be revealed. */
  readonly limitsAccess?: true
}

export const EVERYTHING: readonly IndexRange[] = [createRange(sql`true`)]

export function listTerms(filter: RecordFilter): readonly Term[] {
  const { ids, events, allowed, outcomes, patients, filedUnder, onlyPatients, users, actor } = filter
  const { clients, target, otherThanClient, otherThanStatus, launch, address, reference } = filter
  return [
    ...(ids ? [hasId(ids)] : []),
    ...(reference === undefined ? [] : [hasReference(reference)]),
    ...(launch === undefined ? [] : [equals('launch_id', [launch])]),
    ...(onlyPatients ? [{ ...equals('patient_id', onlyPatients), limitsAccess: true } as const] : []),
    ...(patients ? [concerns(patients)] : []),
    ...(filedUnder === undefined ? [] : [isFiledUnder([filedUnder])]),
    ...(users ? [equals('fhir_user', users)] : []),
    ...(actor ? [isOf(actor)] : []),
    ...(clients ? [equals('client_id', clients)] : []),
    ...(target ? [isChangeTo(target)] : []),
    ...(otherThanClient === undefined ? [] : [isOfOtherClient(otherThanClient)]),
    ...(otherThanStatus ? [{ condition: sql<boolean>`not (${isAmong('status', otherThanStatus)})` }] : []),
    ...(address === undefined ? [] : [{ condition: isAmong('address', [address]) }]),
    ...(events ? [isEvent(events)] : []),
    ...(outcomes ? [hasOutcome(outcomes)] : []),
    ...(allowed === undefined ? [] : [isAllowed(allowed)]),
  ]
}

/** Each id is one row, so that all of them are one range. */
function hasId(ids: readonly number[]): Term {
  const condition = isAmong('id', ids)
  return { condition, ranges: [createRange(condition)] }
}

/** Each value is a range. */
function equals(column: string, values: readonly string[]): Term & { ranges: readonly IndexRange[] } {
  const distinct = [...new Set(values)]
  return {
    condition: isAmong(column, distinct),
    ranges: distinct.map(value => createRange(isAmong(column, [value]))),
  }
}

/** However many values there are, the condition is not nested: SQLite accepts expressions up to 1,000 deep. */
function isAmong(column: string, values: readonly (string | number)[]): Condition {
  const [first, ...more] = values
  if (first === undefined) return sql`false`
  return more.length === 0
    ? sql`${sql.ref(column)} = ${first}`
    : sql`${sql.ref(column)} in (${sql.join(values)})`
}

function hasReference(reference: string): Term {
  const condition = sql<boolean>`${INDEXED.failed} and request_id = ${reference}`
  return { condition, ranges: [createRange(condition)] }
}

function isOf({ subjects = [], fhirUsers = [], operators = [] }: ActorFilter): Term {
  const named = [equals('subject', subjects), equals('fhir_user', fhirUsers)]
  const ran = sql<boolean>`(kind = 'admin' and method = 'sallyport' and ${isAmong('address', operators)})`
  const ranges = named.flatMap(term => term.ranges)
  return {
    condition: or([...named.map(term => term.condition), ran]),
    ...(operators.length === 0
      ? { ranges }
      : { ranges: [...ranges, createRange(inIndex({ kind: 'admin' }))], hasOthers: true as const }),
  }
}

/** Also an account's changes to itself, and an app that registered itself. */
function isChangeTo({ accounts = [], clients = [], grants = [], requests = [] }: TargetFilter): Term {
  const isTarget = (type: TargetType, ids: readonly string[]) =>
    sql<boolean>`(resource_type = ${type} and ${isAmong('resource_id', ids)})`
  const launches = equals('launch_id', grants)
  const conditions = [
    isTarget('account', accounts),
    isTarget('client', clients),
    isTarget('grant', grants),
    sql<boolean>`(resource_type is null and ${isAmong('request', requests)})`,
    sql<boolean>`(method is null and allowed = true and ${isAmong('subject', accounts)})`,
    sql<boolean>`(kind = 'register' and ${isAmong('client_id', clients)})`,
    ...accounts.map(id => isRevocation({ clinician_id: id })),
    ...clients.map(id => isRevocation({ client_id: id })),
  ]
  return {
    condition: sql`((${INDEXED.change} and ${or(conditions)}) or (kind = 'revoke' and ${launches.condition}))`,
    ranges: [createRange(INDEXED.change), ...launches.ranges],
    hasOthers: true,
  }
}

/** The details of the revocation of a grant name its account and its app. */
function isRevocation(party: Readonly<Record<string, string>>): Condition {
  const text = JSON.stringify(party).slice(1, -1)
  return sql`(request like 'grant revoke %' and ${containsText(['details'], text)})`
}

function isOfOtherClient(client: string): Term {
  return { condition: sql`(client_id is null or client_id <> ${client})` }
}

/** The search parameter `patient` of AuditEvent also finds agents. */
function concerns(patients: readonly string[]): Term {
  const filed = isFiledUnder(patients)
  const agent = equals(
    'fhir_user',
    patients.map(id => `Patient/${id}`),
  )
  return {
    condition: or([filed.condition, agent.condition]),
    ranges: [...filed.ranges, ...agent.ranges],
  }
}

function isFiledUnder(patients: readonly string[]): Term & { ranges: readonly IndexRange[] } {
  const alone = equals('patient_id', patients)
  const several = sql<boolean>`(patients is not null and exists (select 1 from audit_event_patient as filed
    where filed.at = event.at and filed.audit_id = event.id and ${isAmong('filed.patient_id', patients)}))`
  return {
    condition: or([alone.condition, several]),
    ranges: [
      ...alone.ranges,
      ...alone.ranges.map(({ condition }) => ({ table: 'audit_event_patient', condition }) as const),
    ],
  }
}

/** The conditions of the partial indexes, word for word. */
const INDEXED = {
  change: sql<boolean>`kind in ('admin', 'register') and (request is null or request not in ('audit list', 'audit export ndjson', 'audit export csv'))`,
  kind: sql<boolean>`kind <> 'fhir'`,
  interaction: sql<boolean>`kind = 'fhir' and interaction not in ('read', 'search-type', 'search-compartment')`,
  failed: sql<boolean>`(allowed = false or status >= 400 or status = 0)`,
} as const

const FREQUENT: ReadonlySet<string | null> = new Set(['read', 'search-type', 'search-compartment', null])

function isEvent(events: readonly EventKind[]): Term {
  return {
    condition: or(events.map(toCondition)),
    ...(events.every(isRare) && { ranges: events.map(event => createRange(inIndex(event))) }),
  }
}

function toCondition({ kind, interaction }: EventKind): Condition {
  if (interaction === undefined) return sql`kind = ${kind}`
  const isInteraction = interaction === null ? sql`interaction is null` : sql`interaction = ${interaction}`
  return sql`(kind = ${kind} and ${isInteraction})`
}

function isRare({ kind, interaction }: EventKind): boolean {
  return kind !== 'fhir' || (interaction !== undefined && !FREQUENT.has(interaction))
}

function inIndex({ kind, interaction }: EventKind): Condition {
  return kind === 'fhir'
    ? sql`${INDEXED.interaction} and interaction = ${interaction}`
    : sql`${INDEXED.kind} and kind = ${kind}`
}

const FAILED = { ranges: [createRange(INDEXED.failed)], hasOthers: true } as const

const OUTCOMES: Readonly<Record<Outcome, Condition>> = {
  0: sql`(allowed = true and status between 1 and 399)`,
  4: sql`(status between 400 and 499 or (allowed = false and status between 1 and 399))`,
  8: sql`(status >= 500 or status = 0)`,
}

function hasOutcome(outcomes: readonly Outcome[]): Term {
  const condition = or(outcomes.map(outcome => OUTCOMES[outcome]))
  return outcomes.includes('0') ? { condition } : { condition, ...FAILED }
}

function isAllowed(allowed: boolean): Term {
  return allowed ? { condition: sql`allowed = true` } : { condition: sql`allowed = false`, ...FAILED }
}

function createRange(condition: Condition): IndexRange {
  return { table: 'audit_event', condition }
}

function or(conditions: readonly Condition[]): Condition {
  return conditions.length === 0 ? sql`false` : sql`(${sql.join(conditions, sql` or `)})`
}
