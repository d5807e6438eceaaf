import type { Auditor } from '../../audit/index.ts'
import type { LogLevel, Settings } from '../../config/index.ts'
import type { AccessPolicy, EnforcementPolicy } from '../../smart/index.ts'
import type { Sealer, Store } from '../../store/index.ts'
import type { Counter, Registry } from '../../web/http/index.ts'
import type { Brand } from '../../web/ui/index.ts'
import type { FhirTokens } from './fhir-reader.ts'

/** The result of a reload: every problem, or what changed. */
export type Reloaded = Applied | { readonly problems: readonly string[]; readonly changed?: undefined }

export interface Applied {
  /** What is in effect now, by name: `sign-in provider staff: added`. */
  readonly changed: readonly string[]
  readonly needRestart: readonly string[]
  readonly problems?: undefined
}

/** Changes the running servers, in all processes of this instance. */
export interface Controls {
  /** The policy in effect (`smart.fhir.policy-file`). */
  getPolicy(): AccessPolicy | undefined
  getLogLevel(): LogLevel
  /** Until the next start. */
  setLogLevel(level: LogLevel): Promise<void>
  /** Reads the policy, the sign-in providers and the certificates again. If anything is invalid, nothing changes. */
  reload(): Promise<Reloaded>
}

export const NO_CONTROLS: Controls = {
  getPolicy: () => undefined,
  getLogLevel: () => 'silent',
  setLogLevel: async () => {},
  reload: async () => ({ changed: [], needRestart: [] }),
}

/** Decides a FHIR request again, without its token, body and data, as `sallyport explain` does. */
export type ExplainRequest = (question: {
  readonly method: string
  /** Relative to the FHIR base. */
  readonly url: string
  readonly scope: string
  readonly patient: string | undefined
  readonly fhirUser: string | undefined
}) => {
  readonly allowed: boolean
  readonly status: number
  /** The scope that permits the request. */
  readonly by: string | null
  readonly text: string
  readonly hint?: string | undefined
}

/** The pages for developers, to which other pages link. */
export interface DeveloperPages {
  /** In the navigation. */
  readonly links: readonly {
    readonly page: 'developers' | 'apps'
    readonly href: string
    readonly text: string
  }[]
  /** The registered apps; with `/new`, where an app is registered. */
  readonly apps: string
  /** Where an app is changed; undefined for the app of the settings. */
  readonly changeApp: (id: string) => string | undefined
  /** Where the same launch can be repeated without a consent page. */
  readonly linkWithoutConsent: (launch: {
    readonly client: string
    readonly patient: string
    readonly encounter: string | undefined
  }) => { readonly href: string; readonly text: string }
  /** The settings of a launch. The launch form of the portal can be sent there. */
  readonly launchSettings: string
}

/** What every part of the auth server depends on. */
export interface BaseContext {
  readonly settings: Settings
  /** The organization on pages. */
  readonly brand: Brand
  readonly store: Store
  readonly sealer: Sealer
  readonly audit: Auditor
  readonly fhirTokens: FhirTokens
  readonly controls: Controls
  readonly metrics: AuthMetrics
  /** Milliseconds since 1970. */
  readonly clock: () => number
  /** Which patients a clinician may see (`smart.fhir.policy-file`). */
  readonly userFilter?: EnforcementPolicy['userFilter']
  /** For requests to the FHIR server. */
  readonly fetch: typeof globalThis.fetch
  /** Explains the decision about a FHIR request on the activity page. */
  readonly explainRequest?: ExplainRequest | undefined
  readonly developerPages?: DeveloperPages | undefined
}

/** Counts the events that show how the auth server is used. */
interface AuthMetrics {
  /** By grant type, and `issued` or the error code. */
  readonly tokenRequests: Counter
  /** By outcome. */
  readonly launches: Counter
  /** By provider (`password` for the clinician table), and `success` or the reason. */
  readonly signIns: Counter
}

export function createAuthMetrics(registry: Registry): AuthMetrics {
  return {
    tokenRequests: registry.counter({
      name: 'sallyport_token_requests_total',
      help: 'Token requests by grant type; the outcome is issued or an OAuth error code.',
      labels: ['grant_type', 'outcome'],
    }),
    launches: registry.counter({
      name: 'sallyport_launches_total',
      help: 'Launches by the portal, by POST /launch-contexts and by developers: issued, refused or failed.',
      labels: ['outcome'],
    }),
    signIns: registry.counter({
      name: 'sallyport_sign_ins_total',
      help: 'Sign-ins by provider id, or password; the outcome is success or the reason of the refusal.',
      labels: ['provider', 'outcome'],
    }),
  }
}
