import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Kysely } from 'kysely'
import { createRandomToken, type Schema, sha256 } from '../../store/index.ts'
import { type CookieDefinition, defineCookie, findNetwork } from '../../web/http/index.ts'
import { LIFETIME, LIMITS } from '../base/limits.ts'
import type { UsersContext } from './context.ts'

/** Where an attempt to sign in comes from. */
export interface Sender {
  /** The IP address of the browser. */
  readonly address: string
  /** The cookie of a browser in which somebody signed in before. */
  readonly browser?: string | undefined
}

/** What an account knows about a sender. */
export interface KnownSender {
  /** The hash of the browser, if the user has signed in there before. */
  readonly browser: string | undefined
  /** The hash of the browser, or else of the network, from which the user has signed in before; null for all others. */
  readonly hash: string | null
}

/** Takes as long for the id of nobody. */
export async function findSender(
  db: Kysely<Schema>,
  userId: string,
  { address, browser }: Sender,
): Promise<KnownSender> {
  const browsers = readTokens(browser).map(token => hashBrowser(userId, token))
  const network = hashNetwork(address)
  const known = await findKnown(db, userId, [...browsers, network])
  const found = browsers.find(hash => known.has(hash))
  return { browser: found, hash: found ?? (known.has(network) ? network : null) }
}

async function findKnown(
  db: Kysely<Schema>,
  userId: string,
  hashes: readonly string[],
): Promise<ReadonlySet<string>> {
  if (hashes.length === 0) return new Set()
  const rows = await db
    .selectFrom('known_sender')
    .select('sender_hash')
    .where('clinician_id', '=', userId)
    .where('sender_hash', 'in', hashes)
    .execute()
  return new Set(rows.map(({ sender_hash }) => sender_hash))
}

/** Another account cannot use the token. Up to 0.3.0 the hash had no account, and the browser could choose the value. */
function hashBrowser(userId: string, token: string): string {
  return sha256(`browser of ${userId} ${token}`)
}

function hashNetwork(address: string): string {
  return sha256(`network ${findNetwork(address)}`)
}

/** After an administrator set a password: whoever signed in with the old one is a stranger. */
export async function forgetSenders(trx: Kysely<Schema>, userId: string): Promise<void> {
  await trx.deleteFrom('known_sender').where('clinician_id', '=', userId).execute()
}

/**
 * Remembers the browser and the network of a user who has just signed in, and returns the value of the browser's cookie. The
 * browser gets a new token, which replaces the one of this user. The tokens of others who share the computer stay.
 */
export async function rememberSender(
  context: Pick<UsersContext, 'settings' | 'clock'>,
  trx: Kysely<Schema>,
  request: FastifyRequest,
  userId: string,
): Promise<string> {
  const sent = readTokens(readBrowser(context, request)).map(text => ({
    text,
    hash: hashBrowser(userId, text),
  }))
  const replaced = await findKnown(
    trx,
    userId,
    sent.map(({ hash }) => hash),
  )
  const token = createRandomToken()
  const hash = hashBrowser(userId, token)
  const seen_at = context.clock()
  const rows = [hash, hashNetwork(request.ip)].map(sender_hash => ({
    clinician_id: userId,
    sender_hash,
    seen_at,
  }))
  await trx
    .insertInto('known_sender')
    .values(rows)
    .onConflict(conflict => conflict.columns(['clinician_id', 'sender_hash']).doUpdateSet({ seen_at }))
    .execute()
  for (const before of replaced) await replaceBrowser(trx, userId, before, hash)
  const others = sent.filter(one => !replaced.has(one.hash)).map(({ text }) => text)
  return [token, ...others].slice(0, LIMITS.usersPerBrowser).join(SEPARATOR)
}

/** The wrong codes of the browser still count: a sign-in of the owner does not give a thief further guesses. */
async function replaceBrowser(
  trx: Kysely<Schema>,
  userId: string,
  before: string,
  after: string,
): Promise<void> {
  await trx
    .updateTable('wrong_code')
    .set({ sender_hash: after })
    .where('clinician_id', '=', userId)
    .where('sender_hash', '=', before)
    .execute()
  await trx
    .deleteFrom('known_sender')
    .where('clinician_id', '=', userId)
    .where('sender_hash', '=', before)
    .execute()
}

const SEPARATOR = '.'

/** The tokens of a cookie: one for each user who signed in in the browser, the last one first. */
function readTokens(cookie: string | undefined): readonly string[] {
  const tokens = (cookie ?? '').split(SEPARATOR, LIMITS.usersPerBrowser)
  return tokens.filter(token => /^[\w-]{43}$/.test(token))
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
