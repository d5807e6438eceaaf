import type { ScopeContext } from '../smart/index.ts'
import type { UpstreamSettings } from './upstream-settings.ts'

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** The effective settings, read once at the start. No URL has a trailing slash. */
export interface Settings {
  readonly issuerUrl: string
  readonly fhirBaseUrl: string
  readonly appUrl: string
  readonly smartClientLaunchUrl: string
  readonly defaultClientId: string
  readonly defaultNeedPatientBanner: boolean
  readonly accessTokenTtlSeconds: number
  readonly databaseUrl: string
  readonly database: {
    readonly poolSize: number
    readonly connectTimeoutSeconds: number
    readonly statementTimeoutSeconds: number
  }
  readonly dataDir: string
  /** Encrypts what must be kept but never be readable in the database. Undefined until it is made: `ensureSecret`. */
  readonly secret: string | undefined
  readonly seedClinicianPassword: string
  readonly authPort: number
  readonly fhirPort: number
  readonly appPort: number
  readonly bind: readonly string[]
  /** Further host names that requests to a server on loopback may name. */
  readonly allowedHosts: readonly string[]
  readonly trustProxy: string | undefined
  readonly tlsCert: string | undefined
  readonly tlsKey: string | undefined
  readonly allowHttp: boolean
  /** How long a server that is stopped serves on and says so. */
  readonly drainDelaySeconds: number
  readonly loginFailureLimit: number
  readonly loginFailureWindowSeconds: number
  readonly loginFailureLimitPerAddress: number
  /** 0: a login lasts until its maximum. */
  readonly loginIdleSeconds: number
  /** Shows `/metrics` to other hosts as well. */
  readonly openMetrics: boolean
  readonly logLevel: LogLevel
  /** Hosts that may have private addresses and whose key sets are fetched all the same. */
  readonly privateJwksHosts: readonly string[]
  /** Whether anybody may register a client. */
  readonly openRegistration: boolean
  /** With it a client may be registered even so. */
  readonly registrationToken: string | undefined
  /** 0: never by age. */
  readonly keyMaxAgeDays: number
  readonly audit: {
    readonly kept: boolean
    readonly failure: 'refuse' | 'allow'
    readonly days: number
    /** Undefined: on loopback every clinician, else nobody. */
    readonly activityClinicians: readonly string[] | undefined
  }
  readonly app: {
    readonly clientId: string
    readonly authMethod: 'private_key_jwt' | 'none'
    readonly scope: string
    readonly issuers: readonly string[]
    readonly sessionMaxSeconds: number
    readonly sessionIdleSeconds: number
    readonly timeoutSeconds: number
  }
  readonly fhir: {
    readonly upstreamUrl: string | undefined
    readonly upstream: UpstreamSettings
    readonly trustedIssuersFile: string | undefined
    readonly smartConfigurationUrl: string | undefined
    readonly searchPermission: 'r' | 's'
    readonly versionAccess: 'current' | 'version'
    readonly scopeContexts: readonly ScopeContext[]
    readonly policyFile: string | undefined
    readonly samplePatients: number
  }
  /** All three addresses and every bind address are loopback. */
  readonly onLoopback: boolean
}

/** Where a value comes from. */
export type Source = 'environment' | 'file' | 'default'
