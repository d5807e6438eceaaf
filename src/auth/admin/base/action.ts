import type { FastifyRequest } from 'fastify'
import type { Kysely, Transaction } from 'kysely'
import type { Auditor, AuditRecord } from '../../../audit/index.ts'
import type { TargetType } from '../../../audit-record/index.ts'
import type { Settings } from '../../../config/index.ts'
import {
  type FactsArgument,
  type FactsIn,
  Failing,
  findOwn,
  isFailure,
  type StoredFacts,
  toSentence,
} from '../../../core/index.ts'
import type { Schema, Store } from '../../../store/index.ts'
import { stripQuery } from '../../../web/http/index.ts'
import type { ReaderCaller } from '../../base/fhir-reader.ts'
import { RECENT_SECONDS } from '../../base/limits.ts'
import type { AdministrationPurpose } from '../../base/purposes.ts'
import { runTransaction } from '../../base/transaction.ts'
import { formatFhirUser } from '../../base/user.ts'
import type { ClientFault } from '../../oauth/clients/validate.ts'
import type { AccessRules } from '../../users/validity/rule.ts'
import {
  ADMIN_ERRORS,
  ADMINISTRATION,
  type AdminReason,
  type AdminWords,
} from '../../words/administration.ts'
import { fillWords } from '../../words/reasons.ts'
import { describeChange } from './describe-change.ts'

/** Who administers: a clinician on the pages, a client at the API, the command line, or a developer. */
export type Actor =
  /** `authTime`: when the clinician authenticated, in milliseconds. */
  | (Person & { readonly kind: 'clinician'; readonly authTime: number })
  | { readonly kind: 'client'; readonly id: string }
  /** `operator` is the user of the operating system and the host: `alice@ward-3`. */
  | { readonly kind: 'command'; readonly operator: string }
  /** `method`: the page on which the developer acts, for the audit trail. */
  | (Person & { readonly kind: 'developer'; readonly method: string })

interface Person {
  readonly id: string
  readonly fhirUserId: string
}

/** The dependencies of every operation, and who performs it. */
export interface Admin {
  readonly store: Store
  readonly audit: Auditor
  readonly clock: () => number
  readonly rules: AccessRules
  readonly actor: Actor
  /** Of new passwords and links. */
  readonly settings?: Pick<Settings, 'brand' | 'minPasswordLength' | 'issuerUrl' | 'activationLinkHours'>
  /** Whether the actor may do this, by what is true now. Locks what it depends on until the transaction ends. */
  readonly mayAct: (db: Kysely<Schema>, operation: AdminOperation) => Promise<boolean>
  /** Whether the actor exists on loopback only (ENDS-2): so does what it adds. */
  readonly isForLoopback?: boolean
  /** Of the HTTP request. */
  readonly requestId?: string
  readonly address?: string
}

/** For the operations of an HTTP request. */
export function makeAdmin(
  {
    store,
    audit,
    clock,
    rules,
    settings,
  }: Required<Pick<Admin, 'store' | 'audit' | 'clock' | 'rules' | 'settings'>>,
  request: Pick<FastifyRequest, 'id' | 'ip'>,
  who: Pick<Admin, 'actor' | 'mayAct' | 'isForLoopback'>,
): Admin {
  return { store, audit, clock, rules, settings, ...who, requestId: request.id, address: request.ip }
}

/** Whoever runs a command has access to the machine, and needs no other right. */
export function makeCommandLine(operator: string): Pick<Admin, 'actor' | 'mayAct'> {
  return { actor: { kind: 'command', operator }, mayAct: async () => true }
}

/** An operation that changed nothing, and why. */
export class AdminFailure extends Failing {
  readonly reason: AdminReason
  readonly facts: StoredFacts
  /** The property of a client that is not valid. */
  readonly fault: ClientFault | undefined
  constructor(reason: AdminReason, facts: StoredFacts = {}, fault?: ClientFault) {
    super()
    this.reason = reason
    this.facts = facts
    this.fault = fault
  }

  get code(): AdminWords['code'] {
    return ADMINISTRATION[this.reason].code
  }

  get status(): (typeof ADMIN_ERRORS)[AdminWords['code']]['status'] {
    return ADMIN_ERRORS[this.code].status
  }

  /** The end of a sentence: `there is no app growth`. */
  get text(): string {
    return fillWords(ADMINISTRATION[this.reason].sentence, this.facts)
  }

  get sentence(): string {
    return toSentence(this.text)
  }
}

export function failAdmin<Reason extends AdminReason>(
  reason: Reason,
  ...[facts]: FactsArgument<FactsIn<(typeof ADMINISTRATION)[Reason]>>
): AdminFailure {
  return new AdminFailure(reason, facts ?? {})
}

/** The properties that changed. Undefined `before`: something was added; undefined `after`: it was removed. */
export interface Change {
  readonly before?: Properties | undefined
  readonly after?: Properties | undefined
}

/** Properties for the audit trail: never a secret, a hash of one or a patient's name. */
export type Properties = Readonly<Record<string, unknown>>

/**
 * Whether a clinician needs a recent sign-in for an operation (ADMIN-4). `asks`: it gives access, or decides who has it. `asks
 * about administrators`: it ends access, and could lock out other administrators. `never asks`: it ends access or reads.
 */
export type SignInRule = 'asks' | 'asks about administrators' | 'never asks'

/** An operation of administrators. */
export interface AdminOperation {
  /** As in the audit trail and on the command line: `client disable`. */
  readonly name: string
  readonly signIn: SignInRule
  /** It reads, and auditors may do it too (ADMIN-29). */
  readonly isForAuditors?: true
}

/** What an operation changes: it finds the record again. */
interface Target {
  readonly type: TargetType
  readonly id: string
  /** As the command names it; by default the id. */
  readonly name?: string
  readonly patient?: string | undefined
}

/** An action, which the audit trail names like the command: `client disable growth`. */
interface Action extends Change {
  readonly operation: AdminOperation
  /** The subject of the operation, as its command names it, or with its type and id. */
  readonly target?: string | Target
  readonly isAboutAdministrator?: boolean
}

type Changed<Result> = Action & { readonly result: Result }

/** Makes a change and its audit record in one transaction (ADMIN-3). A failure undoes what was written. */
export function perform<Result>(
  admin: Admin,
  change: (trx: Transaction<Schema>) => Promise<Changed<Result> | AdminFailure>,
): Promise<Result | AdminFailure> {
  return runTransaction<Result | AdminFailure>(admin.store.db, async trx => {
    const changed = await change(trx)
    if (isFailure(changed)) return changed
    return (await recordAction(admin, changed, trx)) ?? changed.result
  })
}

function hasValues(properties: Properties = {}): boolean {
  return Object.values(properties).some(value => value !== undefined)
}

/**
 * Records an action of an administrator, in the transaction of its change if it has one. If the actor no longer has the
 * right (ADMIN-10), or signed in too long ago (ADMIN-4), returns the failure, which the transaction must be rolled back for.
 * Every action is recorded, so none can be performed without this.
 */
export async function recordAction(
  admin: Admin,
  { operation, target, isAboutAdministrator = false, before, after }: Action,
  trx?: Transaction<Schema>,
): Promise<AdminFailure | undefined> {
  if (!(await admin.mayAct(trx ?? admin.store.db, operation))) return failAdmin('not-an-administrator')
  const stale = needsRecentSignIn(operation, isAboutAdministrator) ? requireRecentSignIn(admin) : undefined
  if (stale) return stale
  const record: AuditRecord = {
    at: admin.clock(),
    server: 'auth',
    kind: 'admin',
    allowed: true,
    status: 200,
    address: admin.address,
    ...describeActor(admin.actor),
    ...describeTarget(operation, target),
    reason: describeChange(operation.name, before, after),
    requestId: admin.requestId,
    ...((hasValues(before) || hasValues(after)) && { details: shortenChange({ before, after }) }),
  }
  await (trx ? admin.audit.recordIn(trx, record) : admin.audit.record(record))
  return undefined
}

function describeTarget(
  { name }: AdminOperation,
  target: Action['target'],
): Pick<AuditRecord, 'request' | 'type' | 'id' | 'patient' | 'launch'> {
  if (target === undefined) return { request: name }
  if (typeof target === 'string') return { request: `${name} ${target}` }
  const { type, id, patient } = target
  return {
    request: `${name} ${target.name ?? id}`,
    type,
    id,
    patient,
    // A grant has the id of its launch.
    ...(type === 'grant' && { launch: id }),
  }
}

const TARGET_TYPES: Readonly<Record<string, TargetType>> = {
  clinician: 'account',
  account: 'account',
  client: 'client',
  grant: 'grant',
}

/** What was attempted and refused, as the record of the operation would name it: for a page without one, its path. */
export async function describeAttempt(
  { db }: Pick<Store, 'db'>,
  { method, url, params }: Pick<FastifyRequest, 'method' | 'url' | 'params'>,
  operation: AdminOperation | undefined,
): Promise<Pick<AuditRecord, 'method' | 'request' | 'type' | 'id' | 'launch'>> {
  if (!operation) return { method, request: stripQuery(url) }
  return describeTarget(operation, await findTarget(db, operation, Object.values(params ?? {})[0]))
}

/** Finds the target of an operation by the parameter of its path. */
async function findTarget(
  db: Kysely<Schema>,
  { name }: AdminOperation,
  id: string | undefined,
): Promise<Action['target']> {
  const type = findOwn(TARGET_TYPES, name.split(' ')[0] ?? '')
  // PostgreSQL does not accept a NUL.
  if (id === undefined || id.includes('\0') || type === undefined) return id
  if (type !== 'account') return { type, id }
  const account = await db.selectFrom('clinician').select('username').where('id', '=', id).executeTakeFirst()
  return account ? { type, id, name: account.username } : id
}

function describeActor(
  actor: Actor,
): Pick<AuditRecord, 'method' | 'client' | 'subject' | 'fhirUser' | 'address'> {
  switch (actor.kind) {
    case 'clinician':
      return { method: 'admin', ...describePerson(actor) }
    case 'client':
      return { method: 'admin-api', client: actor.id, subject: actor.id }
    case 'command':
      return { method: 'sallyport', address: actor.operator }
    case 'developer':
      return { method: actor.method, ...describePerson(actor) }
  }
}

function describePerson({ id, fhirUserId }: Person): Pick<AuditRecord, 'subject' | 'fhirUser'> {
  return { subject: id, fhirUser: formatFhirUser(fhirUserId) || undefined }
}

/** On whose behalf the server reads for an administrator, and why. */
export function describeCaller(
  { actor, address }: Pick<Admin, 'actor' | 'address'>,
  purpose: AdministrationPurpose,
): ReaderCaller {
  if (actor.kind === 'command') return { purpose, address: actor.operator }
  return {
    purpose,
    subject: actor.id,
    ...(actor.kind !== 'client' && { fhirUserId: actor.fhirUserId }),
    ...(address !== undefined && { address }),
  }
}

const MAX_CHANGE_CHARACTERS = 7_000

/** The lengths of texts and lists in a long change, the first that suffice. */
const SHORTER = [
  { characters: 1_000, items: 50 },
  { characters: 100, items: 5 },
  { characters: 20, items: 2 },
] as const

/** The audit trail drops details that are too long. */
function shortenChange(change: Change): Change {
  const shortened = [change, ...SHORTER.map(limits => shorten(change, limits))]
  return shortened.find(it => JSON.stringify(it).length <= MAX_CHANGE_CHARACTERS) ?? {}
}

function shorten(change: Change, { characters, items }: (typeof SHORTER)[number]): Change {
  const text = JSON.stringify(change, (_name, value: unknown) => {
    if (typeof value === 'string' && value.length > characters) return `${value.slice(0, characters)}…`
    return Array.isArray(value) && value.length > items
      ? [...value.slice(0, items), `… and ${value.length - items} more`]
      : value
  })
  return JSON.parse(text)
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
 * A clinician gives access only soon after a sign-in (ADMIN-4). The token of a client lives for five minutes, the command line
 * needs access to the machine, and a developer is on loopback.
 */
export function requireRecentSignIn({
  actor,
  clock,
}: Pick<Admin, 'actor' | 'clock'>): AdminFailure | undefined {
  return actor.kind === 'clinician' && clock() - actor.authTime >= RECENT_SECONDS * 1000
    ? failAdmin('sign-in-too-old', { minutes: RECENT_SECONDS / 60 })
    : undefined
}

/**
 * Whether somebody may open a page or perform an operation of the administration. Auditors see what is not the form of an
 * operation, and perform those that only read (ADMIN-29).
 */
export function isAllowed(
  { admin, auditor }: { readonly admin: boolean; readonly auditor: boolean },
  operation: AdminOperation | undefined,
): boolean {
  return admin || (auditor && (operation === undefined || operation.isForAuditors === true))
}

/** Whether an operation gives access, so that its pages ask for a sign-in before they are shown. */
export function givesAccess({ signIn }: Pick<AdminOperation, 'signIn'>): boolean {
  return signIn === 'asks'
}

function needsRecentSignIn({ signIn }: AdminOperation, isAboutAdministrator: boolean): boolean {
  return signIn === 'asks' || (isAboutAdministrator && signIn === 'asks about administrators')
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
