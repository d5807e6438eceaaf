import { randomToken, sha256 } from '../../store/index.ts'
import { type CookiePlan, cookiePlan } from '../../web/index.ts'
import type { AppContext } from '../context.ts'

const LIFETIME_MS = 10 * 60_000
const PURPOSE = 'app launch code verifier'

/** A launch whose browser is at the auth server. */
export interface PendingLaunch {
  readonly issuer: string
  readonly fhirBaseUrl: string
  readonly nonce: string
  readonly codeVerifier: string
}

/** What a browser takes along: the state in the address, and a cookie that only this browser has. */
export interface LaunchTicket {
  readonly state: string
  readonly cookie: CookiePlan
  readonly cookieValue: string
}

/** Each launch has a cookie of its own, so that two tabs do not overwrite each other (checklist T8, 69). */
export function launchCookie(context: AppContext, state: string): CookiePlan {
  const plan = cookiePlan(context.settings.appUrl, `sallyport-app-launch-${sha256(state).slice(0, 16)}`)
  return { ...plan, attributes: { ...plan.attributes, maxAge: LIFETIME_MS / 1000 } }
}

export async function keepLaunch(context: AppContext, launch: PendingLaunch): Promise<LaunchTicket> {
  const state = randomToken()
  const cookieValue = randomToken()
  const now = context.clock()
  await context.store.db
    .insertInto('app_launch')
    .values({
      state_hash: sha256(state),
      browser_hash: sha256(cookieValue),
      issuer: launch.issuer,
      fhir_base_url: launch.fhirBaseUrl,
      nonce: launch.nonce,
      code_verifier_sealed: context.sealer.seal(launch.codeVerifier, PURPOSE),
      created_at: now,
      expires_at: now + LIFETIME_MS,
    })
    .execute()
  return { state, cookie: launchCookie(context, state), cookieValue }
}

/**
 * Takes the launch out of the database: whoever comes second with the same state finds none. Another browser's attempt
 * leaves it where it is.
 */
export async function takeLaunch(
  context: AppContext,
  state: string,
  cookieValue: string,
): Promise<PendingLaunch | undefined> {
  const row = await context.store.db
    .deleteFrom('app_launch')
    .where('state_hash', '=', sha256(state))
    .where('browser_hash', '=', sha256(cookieValue))
    .where('expires_at', '>', context.clock())
    .returningAll()
    .executeTakeFirst()
  return (
    row && {
      issuer: row.issuer,
      fhirBaseUrl: row.fhir_base_url,
      nonce: row.nonce,
      codeVerifier: context.sealer.open(row.code_verifier_sealed, PURPOSE),
    }
  )
}
