import type { FastifyBaseLogger } from 'fastify'
import type { Auditor } from '../audit/index.ts'
import type { LruMap } from '../cache/index.ts'
import type { Settings } from '../config/index.ts'
import type { Sealer, Store } from '../store/index.ts'
import { type CookieDefinition, defineCookie } from '../web/http/index.ts'
import type { Person } from '../web/person/index.ts'
import type { Action } from '../web/ui/index.ts'
import type { Result } from './failure.ts'
import type { Session } from './session.ts'

export type AppSettings = Pick<
  Settings,
  | 'appUrl'
  | 'issuerUrl'
  | 'fhirBaseUrl'
  | 'bind'
  | 'allowedHosts'
  | 'app'
  | 'developerTools'
  | 'loginIdleSeconds'
> & {
  readonly fhir: Pick<Settings['fhir'], 'upstreamUrl' | 'samplePatients'>
}

/** Clock and outgoing HTTP are passed in, so that tests control both. */
export interface SessionBaseContext {
  readonly settings: AppSettings
  readonly store: Store
  readonly sealer: Sealer
  readonly audit: Auditor
  readonly clock: () => number
  readonly fetch: typeof fetch
  readonly log: FastifyBaseLogger
  readonly timeoutMs: number
  readonly authTimeoutMs: number
  /** Renewals in progress in this process, by session. */
  readonly renewals: Map<string, Promise<Result<Session>>>
  /** The patients that pages of this process have shown, by session. */
  readonly shownPatients: LruMap<Person>
  /** When this process told the auth server that the user of a session is active, by session. */
  readonly reportedUses: LruMap<number>
  /** The time since which a FHIR server has not responded, by base URL. */
  readonly unreachableSince: Map<string, number>
}

/** The link to the patient list, which leads patients and relatives to their own start page. */
export function linkStart(settings: AppSettings, text: string): Action {
  return linkAuthServer(settings, '/portal', text)
}

/** Pages of the auth server are never shown in a frame: there a link to them opens a new tab. */
export function linkAuthServer(settings: AppSettings, path: string, text: string): Action {
  return { href: settings.issuerUrl + path, text, newTab: allowsFrames(settings) }
}

/** Links the reference of an error page to its event, for developers. */
export function linkReference(
  { developerTools, issuerUrl }: AppSettings,
  reference: string,
): string | undefined {
  return developerTools ? `${issuerUrl}/activity?${new URLSearchParams({ reference })}` : undefined
}

/** Whether pages of other sites may show the app in a frame. */
export function allowsFrames({ app }: AppSettings): boolean {
  return app.frameOrigins.length > 0
}

export function defineAppCookie(settings: AppSettings, name: string): CookieDefinition {
  return defineCookie(settings.appUrl, name, { isFramed: allowsFrames(settings) })
}

/** Whether a patient is a sample patient of the embedded FHIR server. */
export function isSample({ fhir }: AppSettings, { sample }: Person): boolean {
  return fhir.upstreamUrl === undefined && sample === true
}
