import { MINUTE_MS } from '../../core/index.ts'
import {
  countPendingRows,
  createRandomToken,
  prepareInsert,
  prepareQuery,
  sha256,
} from '../../store/index.ts'
import { type CookieDefinition, findSite } from '../../web/http/index.ts'
import { defineAppCookie } from '../context.ts'
import {
  KEPT_CHARACTERS,
  PENDING_LAUNCHES,
  PENDING_LAUNCHES_IN_ALL,
  PENDING_LAUNCHES_PER_NETWORK,
} from '../limits.ts'
import type { AppContext } from '../oauth/context.ts'

const LIFETIME_MS = 10 * MINUTE_MS
const toSealedCell = (stateHash: string) =>
  ({ table: 'app_launch', column: 'code_verifier_sealed', row: stateHash }) as const
const toLaunchCell = (stateHash: string) =>
  ({ table: 'app_launch', column: 'launch_sealed', row: stateHash }) as const

export interface PendingLaunch {
  readonly issuer: string
  readonly fhirBaseUrl: string
  readonly nonce: string
  readonly codeVerifier: string
  /** The launch token of a launch in a frame, empty for a standalone launch. Undefined outside of frames. */
  readonly framedLaunch: string | undefined
}

/** The state for the URL, and a cookie that binds the launch to this browser. */
export interface LaunchTicket {
  readonly state: string
  readonly cookie: CookieDefinition
  readonly cookieValue: string
}

/** What the cookie of a launch without a row holds, encrypted. */
interface KeptLaunch extends PendingLaunch {
  readonly expiresAt: number
}

const toKeptPurpose = (stateHash: string) => `launch ${stateHash}`

/** A value of a row is random and has no dot. */
const isKeptByBrowser = (cookieValue: string) => cookieValue.includes('.')

/** Each launch has its own cookie, so that two tabs do not overwrite each other (APP-6). */
export function planLaunchCookie(context: AppContext, state: string): CookieDefinition {
  return planCookie(context, sha256(state).slice(0, 16))
}

function planCookie({ settings }: AppContext, name: string): CookieDefinition {
  const plan = defineAppCookie(settings, `sallyport-app-launch-${name}`)
  return { ...plan, attributes: { ...plan.attributes, maxAge: LIFETIME_MS / 1000, priority: 'low' } }
}

/**
 * Deletes all but the newest launches of this browser and returns the cookies to expire. Any site can open
 * `/launch` in a browser repeatedly, and a browser with too many cookies for a host discards some, such as the
 * login cookie of the auth server on another port.
 */
export async function makeRoom(
  context: AppContext,
  cookies: Readonly<Record<string, string | undefined>>,
): Promise<readonly CookieDefinition[]> {
  const prefix = planCookie(context, '').name
  const held = Object.entries(cookies).flatMap(([name, value = '']) =>
    name.startsWith(prefix) ? [{ name, hash: sha256(value), hasRow: !isKeptByBrowser(value) }] : [],
  )
  if (held.length === 0) return []
  const newest = await context.store.db
    .selectFrom('app_launch')
    .select('browser_hash')
    .where('browser_hash', 'in', listHashes(held))
    .where('expires_at', '>', context.clock())
    .orderBy('created_at', 'desc')
    .limit(PENDING_LAUNCHES - 1)
    .execute()
  const isNewest = (hash: string) => newest.some(({ browser_hash }) => browser_hash === hash)
  // A browser sends its older cookies first (RFC 6265, 5.4).
  const room = PENDING_LAUNCHES - 1 - newest.length
  const kept = room > 0 ? held.filter(({ hasRow }) => !hasRow).slice(-room) : []
  const over = held.filter(one => !isNewest(one.hash) && !kept.includes(one))
  if (over.length === 0) return []
  await context.store.db.deleteFrom('app_launch').where('browser_hash', 'in', listHashes(over)).execute()
  return over.map(({ name }) => planCookie(context, name.slice(prefix.length)))
}

function listHashes(cookies: readonly { readonly hash: string }[]): readonly string[] {
  return cookies.map(({ hash }) => hash)
}

/**
 * Stores a launch. If too many of the network or of all are pending, the browser keeps it itself, encrypted in its cookie: whom
 * a portal or an EHR sends here does not wait for strangers. Undefined if it is too long for a cookie.
 */
export async function keepLaunch(
  context: AppContext,
  launch: PendingLaunch,
  address: string,
): Promise<LaunchTicket | undefined> {
  const networkHash = sha256(findSite(address))
  const now = context.clock()
  const state = createRandomToken()
  const cookie = planLaunchCookie(context, state)
  if ((await countLaunches(context.store.db, { networkHash, now })) !== 'room') {
    const text = JSON.stringify({ ...launch, expiresAt: now + LIFETIME_MS } satisfies KeptLaunch)
    return text.length > KEPT_CHARACTERS
      ? undefined
      : { state, cookie, cookieValue: context.sealer.seal(text, toKeptPurpose(sha256(state))) }
  }
  const cookieValue = createRandomToken()
  await insertLaunch(context.store.db, {
    state_hash: sha256(state),
    browser_hash: sha256(cookieValue),
    issuer: launch.issuer,
    fhir_base_url: launch.fhirBaseUrl,
    nonce: launch.nonce,
    code_verifier_sealed: context.sealer.seal(launch.codeVerifier, toSealedCell(sha256(state))),
    network_hash: networkHash,
    launch_sealed:
      launch.framedLaunch === undefined
        ? null
        : context.sealer.seal(launch.framedLaunch, toLaunchCell(sha256(state))),
    created_at: now,
    expires_at: now + LIFETIME_MS,
  })
  return { state, cookie, cookieValue }
}

const insertLaunch = prepareInsert('app_launch')

const countLaunches = countPendingRows('app_launch', {
  perNetwork: PENDING_LAUNCHES_PER_NETWORK,
  inAll: PENDING_LAUNCHES_IN_ALL,
})

/** A launch that its browser kept. Once: the state is remembered until it would have expired. */
async function takeKept(
  { store, sealer, clock }: AppContext,
  stateHash: string,
  cookieValue: string,
): Promise<PendingLaunch | undefined> {
  const text = sealer.tryOpen(cookieValue, toKeptPurpose(stateHash))
  if (text === undefined) return undefined
  const { expiresAt, ...launch }: KeptLaunch = JSON.parse(text)
  if (expiresAt <= clock()) return undefined
  const { numInsertedOrUpdatedRows } = await store.db
    .insertInto('used_assertion')
    .values({ client_id: 'app_launch', jti_hash: stateHash, expires_at: expiresAt })
    .onConflict(conflict => conflict.doNothing())
    .executeTakeFirst()
  return numInsertedOrUpdatedRows === 1n ? launch : undefined
}

/**
 * Deletes the launch, so that a second request with the same state finds none. A request from another browser does
 * not delete it.
 */
export async function takeLaunch(
  context: AppContext,
  state: string,
  cookieValue: string,
): Promise<PendingLaunch | undefined> {
  const stateHash = sha256(state)
  if (isKeptByBrowser(cookieValue)) return takeKept(context, stateHash, cookieValue)
  const browserHash = sha256(cookieValue)
  const [row] = (await deleteLaunch(context.store.db, { stateHash, browserHash, now: context.clock() })).rows
  // Undefined if it was sealed for another launch or with another secret.
  const codeVerifier = row && context.sealer.tryOpen(row.code_verifier_sealed, toSealedCell(row.state_hash))
  if (!row || codeVerifier === undefined) return undefined
  const { issuer, fhir_base_url: fhirBaseUrl, nonce, launch_sealed: sealed } = row
  const framedLaunch =
    sealed === null ? undefined : context.sealer.tryOpen(sealed, toLaunchCell(row.state_hash))
  return { issuer, fhirBaseUrl, nonce, codeVerifier, framedLaunch }
}

const deleteLaunch = prepareQuery(
  (db, { stateHash, browserHash, now }: { stateHash: string; browserHash: string; now: number }) =>
    db
      .deleteFrom('app_launch')
      .where('state_hash', '=', stateHash)
      .where('browser_hash', '=', browserHash)
      .where('expires_at', '>', now)
      .returningAll(),
)

/** Whether a frame began this launch and waits for it. Its cookie is not sent to a window outside of the frame. */
export async function isWaitingInFrame({ store, clock }: AppContext, state: string): Promise<boolean> {
  const row = await store.db
    .selectFrom('app_launch')
    .select('state_hash')
    .where('state_hash', '=', sha256(state))
    .where('launch_sealed', 'is not', null)
    .where('expires_at', '>', clock())
    .executeTakeFirst()
  return row !== undefined
}
