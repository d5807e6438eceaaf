import type { FastifyBaseLogger } from 'fastify'
import type { Auditor } from '../audit/index.ts'
import type { Settings } from '../config/index.ts'
import type { Sealer, Store } from '../store/index.ts'
import type { CookiePlan } from '../web/index.ts'
import type { Result } from './failure.ts'
import type { AppKeys } from './oauth/app-key.ts'
import type { Discovery } from './oauth/discovery.ts'
import type { Session } from './sessions/session.ts'

/** The settings that the app reads. */
export type AppSettings = Pick<
  Settings,
  'appUrl' | 'issuerUrl' | 'fhirBaseUrl' | 'bind' | 'allowedHosts' | 'app'
> & {
  readonly fhir: Pick<Settings['fhir'], 'upstreamUrl' | 'samplePatients'>
}

/** What the app's functions work with. Clock and outgoing HTTP are given, so that tests own both. */
export interface AppContext {
  readonly settings: AppSettings
  readonly store: Store
  readonly sealer: Sealer
  readonly audit: Auditor
  readonly clock: () => number
  readonly fetch: typeof fetch
  readonly log: FastifyBaseLogger
  /** How long the FHIR server may take to answer. */
  readonly timeoutMs: number
  /** How long the auth server may take. */
  readonly authTimeoutMs: number
  readonly discovery: Discovery
  readonly appKeys: AppKeys
  readonly sessionCookie: CookiePlan
  /** Renewals that are under way in this process, by session. */
  readonly renewals: Map<string, Promise<Result<Session>>>
  /** Since when a FHIR server has not answered, by its base. */
  readonly awaySince: Map<string, number>
}
