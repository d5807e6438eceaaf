import { randomUUID } from 'node:crypto'
import type { Kysely } from 'kysely'
import { DAY_MS } from '../../../core/index.ts'
import type { Schema } from '../../../store/index.ts'
import { LIMITS } from '../../base/limits.ts'
import type { Reservation } from '../attempt.ts'
import type { UsersContext } from '../context.ts'

type Context = Pick<UsersContext, 'store' | 'clock'>

/** What a user enters as a second factor, and where it comes from. */
export interface EnteredProof {
  readonly userId: string
  readonly kind: Schema['wrong_code']['kind']
  /** The browser or network that the account knows; null for all others together. */
  readonly sender: string | null
  readonly address: string
}

/** Stores a wrong second factor, which its owner sees. */
export async function addWrongProof(
  { store: { db }, clock }: Context,
  { userId, kind, sender, address }: EnteredProof,
): Promise<string> {
  const id = randomUUID()
  const row = { id, clinician_id: userId, at: clock(), kind, sender_hash: sender, address }
  await db.insertInto('wrong_code').values(row).execute()
  return id
}

/**
 * Counts a one-time code as wrong before it is compared, so that simultaneous guesses cannot exceed the limit of a day. An
 * accepted code does not start the count again: a thief of the password would guess on after each sign-in of the owner.
 * Undefined if the limit of the sender is reached: no code of an authenticator app is accepted from there.
 */
export async function reserveCode(context: Context, proof: EnteredProof): Promise<Reservation | undefined> {
  const { db } = context.store
  const id = await addWrongProof(context, proof)
  const release = async (trx: Kysely<Schema>) => {
    await trx.deleteFrom('wrong_code').where('id', '=', id).execute()
  }
  const { count } = await db
    .selectFrom('wrong_code')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('clinician_id', '=', proof.userId)
    .where('at', '>', context.clock() - DAY_MS)
    .where('kind', '=', 'code')
    .where('sender_hash', proof.sender === null ? 'is' : '=', proof.sender)
    .executeTakeFirstOrThrow()
  if (Number(count) <= LIMITS.wrongCodesPerDay) return { release }
  await release(db)
  return undefined
}

/** The wrong second factors of an account. */
export interface WrongProofs {
  readonly count: number
  /** Of the last 24 hours. */
  readonly today: number
  readonly last: number
  /** The last ones, the newest first. */
  readonly addresses: readonly string[]
  /** Whether codes of authenticator apps are refused from one of the senders. */
  readonly isFull: boolean
}

const ADDRESSES = 5

/** Those that are kept: of the last 30 days. Undefined if there are none. */
export async function findWrongProofs(
  db: Kysely<Schema>,
  userId: string,
  now: number,
): Promise<WrongProofs | undefined> {
  const rows = await db
    .selectFrom('wrong_code')
    .select(['at', 'kind', 'sender_hash', 'address'])
    .where('clinician_id', '=', userId)
    .orderBy('at', 'desc')
    .execute()
  const [last] = rows
  if (!last) return undefined
  const today = rows.filter(({ at }) => at > now - DAY_MS)
  const codes = Map.groupBy(
    today.filter(({ kind }) => kind === 'code'),
    ({ sender_hash }) => sender_hash,
  )
  const addresses = new Set(rows.flatMap(({ address }) => address ?? []))
  return {
    count: rows.length,
    today: today.length,
    last: last.at,
    addresses: [...addresses].slice(0, ADDRESSES),
    isFull: [...codes.values()].some(({ length }) => length >= LIMITS.wrongCodesPerDay),
  }
}

/** After a new password nobody can guess with the old one, and a removed second factor has no codes. */
export async function forgetWrongProofs(trx: Kysely<Schema>, userId: string): Promise<void> {
  await trx.deleteFrom('wrong_code').where('clinician_id', '=', userId).execute()
}
