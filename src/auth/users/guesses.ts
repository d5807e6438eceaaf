import { randomUUID } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Kysely, sql } from 'kysely'
import { createRandomToken, type Schema, sha256 } from '../../store/index.ts'
import { type CookieDefinition, defineCookie, findNetwork } from '../../web/index.ts'
import { LIFETIME, LIMITS } from '../base/limits.ts'
import type { UsersContext } from './context.ts'

/** Where an attempt to sign in comes from. */
export interface Sender {
  /** The IP address of the browser. */
  readonly address: string
  /** The cookie of a browser in which somebody signed in before. */
  readonly browser?: string | undefined
}

/**
 * The limit of wrong passwords of an account in a row, over all addresses and instances (LOGIN-16). Browsers and networks from
 * which the user has signed in are counted one by one, all others together: whoever guesses from elsewhere cannot lock the
 * user out. Undefined `userId`: the username is unknown.
 */
export function createGuessLimit(
  { store: { db }, clock }: Pick<UsersContext, 'store' | 'clock'>,
  userId: string | undefined,
  { address, browser }: Sender,
) {
  const id = userId ?? ''
  const sender = findSender(db, id, { address, browser })
  return {
    /** Whether no password is accepted from this sender. Takes as long for an unknown username. */
    isFull: async () => (await countWrongPasswords(db, id, await sender)) >= LIMITS.wrongPasswords,
    async add(trx: Kysely<Schema>): Promise<void> {
      const row = { id: randomUUID(), clinician_id: id, sender_hash: await sender, at: clock(), address }
      await trx.insertInto('wrong_password').values(row).execute()
    },
    /** After a sign-in. What others guessed meanwhile from elsewhere still counts. */
    async clear(trx: Kysely<Schema>): Promise<void> {
      const hash = await sender
      await trx
        .deleteFrom('wrong_password')
        .where('clinician_id', '=', id)
        .where('sender_hash', hash === null ? 'is' : '=', hash)
        .execute()
    },
  }
}

/** The hash of the browser, or else of the network, from which the user has signed in before; otherwise null. */
async function findSender(
  db: Kysely<Schema>,
  userId: string,
  { address, browser }: Sender,
): Promise<string | null> {
  const hashes = listSenders({ address, browser })
  const known = await db
    .selectFrom('known_sender')
    .select('sender_hash')
    .where('clinician_id', '=', userId)
    .where('sender_hash', 'in', hashes)
    .execute()
  return hashes.find(hash => known.some(({ sender_hash }) => sender_hash === hash)) ?? null
}

/** The browser first: its user need not share the count of a network. */
function listSenders({ address, browser }: Sender): readonly string[] {
  return [
    ...(browser === undefined ? [] : [sha256(`browser ${browser}`)]),
    sha256(`network ${findNetwork(address)}`),
  ]
}

async function countWrongPasswords(
  db: Kysely<Schema>,
  userId: string,
  senderHash: string | null,
): Promise<number> {
  const { count } = await db
    .selectFrom('wrong_password')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('clinician_id', '=', userId)
    .where('sender_hash', senderHash === null ? 'is' : '=', senderHash)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** After a new password, or if an administrator unlocks the account. */
export async function forgetWrongPasswords(trx: Kysely<Schema>, userId: string): Promise<void> {
  await trx.deleteFrom('wrong_password').where('clinician_id', '=', userId).execute()
}

/** After an administrator set a password: whoever signed in with the old one is a stranger. */
export async function forgetSenders(trx: Kysely<Schema>, userId: string): Promise<void> {
  await trx.deleteFrom('known_sender').where('clinician_id', '=', userId).execute()
}

/** The wrong passwords of an account since its last sign-in. */
export interface Guesses {
  readonly count: number
  readonly since: number
  readonly last: number
  /** From most to fewest, the most frequent ones. */
  readonly addresses: readonly string[]
}

const ADDRESSES = 5

export async function findGuesses(db: Kysely<Schema>, userId: string): Promise<Guesses | undefined> {
  const rows = await db
    .selectFrom('wrong_password')
    .select(['at', 'address'])
    .where('clinician_id', '=', userId)
    .orderBy('at')
    .execute()
  const [first] = rows
  const last = rows.at(-1)
  if (!first || !last) return undefined
  const byAddress = [...Map.groupBy(rows, ({ address }) => address)]
  const addresses = byAddress.toSorted(([, a], [, b]) => b.length - a.length).map(([address]) => address)
  return { count: rows.length, since: first.at, last: last.at, addresses: addresses.slice(0, ADDRESSES) }
}

/** Which of the accounts are locked, and since when. */
export async function findLocked(
  db: Kysely<Schema>,
  userIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('wrong_password')
    .select(({ fn }) => ['clinician_id', fn.max('at').as('at')])
    .where('clinician_id', 'in', userIds)
    .groupBy(['clinician_id', 'sender_hash'])
    .having(({ fn }) => fn.countAll(), '>=', LIMITS.wrongPasswords)
    .execute()
  return new Map(rows.map(({ clinician_id, at }) => [clinician_id, Number(at)]))
}

/** For a query of accounts. */
export const isLocked = sql<boolean>`exists (select 1 from wrong_password where wrong_password.clinician_id = clinician.id
  group by sender_hash having count(*) >= ${sql.lit(LIMITS.wrongPasswords)})`

/** Remembers the browser and the network of a user who has just signed in, and returns the value of the browser's cookie. */
export async function rememberSender(
  context: Pick<UsersContext, 'settings' | 'clock'>,
  trx: Kysely<Schema>,
  request: FastifyRequest,
  userId: string,
): Promise<string> {
  const browser = readBrowser(context, request) ?? createRandomToken()
  const seen_at = context.clock()
  const rows = listSenders({ address: request.ip, browser }).map(sender_hash => ({
    clinician_id: userId,
    sender_hash,
    seen_at,
  }))
  await trx
    .insertInto('known_sender')
    .values(rows)
    .onConflict(conflict => conflict.columns(['clinician_id', 'sender_hash']).doUpdateSet({ seen_at }))
    .execute()
  return browser
}

export function setBrowserCookie(
  context: Pick<UsersContext, 'settings'>,
  reply: FastifyReply,
  browser: string,
): void {
  const { name, attributes } = defineBrowserCookie(context)
  reply.setCookie(name, browser, attributes)
}

/** The cookie of a browser in which somebody has signed in. */
export function readBrowser(
  context: Pick<UsersContext, 'settings'>,
  request: FastifyRequest,
): string | undefined {
  return request.cookies[defineBrowserCookie(context).name]
}

/** It opens nothing: with it a browser is told apart from those of strangers. A browser that removes cookies may drop it first. */
function defineBrowserCookie({ settings }: Pick<UsersContext, 'settings'>): CookieDefinition {
  const { name, attributes } = defineCookie(settings.issuerUrl, 'sallyport-browser')
  return { name, attributes: { ...attributes, priority: 'low', maxAge: LIFETIME.knownSender / 1000 } }
}
