import type { ScopeContext } from '../smart/index.ts'
import type { CdsService } from './cds-services.ts'
import type { ClaimRule, FhirUserRule, LoginProvider } from './login-providers.ts'
import type { LogLevel, SettingType } from './setting-types.ts'

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
  /** Encrypts secrets in the database. Undefined until `ensureSecret` creates it. */
  readonly secret: string | undefined
  readonly seedClinicianPassword: string
  /** Number of processes in which the servers run. */
  readonly workers: number
  readonly authPort: number
  readonly fhirPort: number
  readonly appPort: number
  readonly bind: readonly string[]
  readonly allowedHosts: readonly string[]
  readonly trustProxy: string | undefined
  readonly tlsCert: string | undefined
  readonly tlsKey: string | undefined
  readonly allowHttp: boolean
  /** How long a stopping server keeps serving. */
  readonly drainDelaySeconds: number
  readonly loginFailureLimit: number
  readonly loginFailureWindowSeconds: number
  readonly loginFailureLimitPerAddress: number
  /** 0: a login lasts until its maximum. */
  readonly loginIdleSeconds: number
  readonly login: {
    readonly passwords: boolean
    readonly providers: readonly LoginProvider[]
    /** The settings of the provider that needs no list, as written. */
    readonly single: {
      readonly issuer: string | undefined
      readonly clientId: string | undefined
      readonly clientSecret: string | undefined
      readonly name: string | undefined
      readonly fhirUser: FhirUserRule | undefined
      readonly allow: ClaimRule | undefined
      readonly admin: ClaimRule | undefined
      readonly provision: boolean
    }
  }
  readonly cds: {
    readonly services: readonly CdsService[]
    /** The settings of the service that needs no list, as written. */
    readonly single: { readonly [Name in keyof CdsService]: CdsService[Name] | undefined }
  }
  /** Developers may get launches and tokens without a login. */
  readonly lab: boolean
  /** Off loopback, the lab needs this confirmation. */
  readonly labExposesAllPatients: boolean
  readonly metrics: {
    readonly isOpen: boolean
    /** Undefined: every server has `/metrics` on its own port. */
    readonly port: number | undefined
    readonly bind: readonly string[]
    /** Who may read `/metrics` on the ports of the servers. */
    readonly access: 'loopback' | 'everyone' | 'nobody'
  }
  readonly logLevel: LogLevel
  /** Undefined: traces are not exported. */
  readonly telemetry: TelemetrySettings | undefined
  readonly privateJwksHosts: readonly string[]
  readonly openRegistration: boolean
  readonly registrationToken: string | undefined
  /** 0: never by age. */
  readonly keyMaxAgeDays: number
  readonly audit: {
    readonly kept: boolean
    readonly failure: 'refuse' | 'allow'
    readonly days: number
    /** Undefined: every clinician on loopback, otherwise none. */
    readonly activityClinicians: readonly string[] | undefined
  }
  /** Where audit records are sent to. */
  readonly auditFeeds: {
    readonly fhirUrl: string | undefined
    readonly token: string | undefined
    readonly syslogUrl: string | undefined
    readonly tlsCa: string | undefined
    readonly tlsCert: string | undefined
    readonly tlsKey: string | undefined
  }
  readonly app: {
    readonly clientId: string
    readonly authMethod: 'private_key_jwt' | 'none'
    readonly scope: string
    readonly issuers: readonly string[]
    readonly sessionMaxSeconds: number
    readonly sessionIdleSeconds: number
    /** Origins whose pages may show the app server in a frame. */
    readonly frameOrigins: readonly string[]
    readonly timeoutSeconds: number
  }
  readonly fhir: {
    readonly upstreamUrl: string | undefined
    readonly upstream: UpstreamSettings
    readonly trustedIssuersFile: string | undefined
    readonly smartConfigurationUrl: string | undefined
    readonly searchPermission: 'r' | 's'
    readonly versionAccess: 'current' | 'version'
    readonly protectedTypes: readonly string[]
    readonly bodyLimitMegabytes: number
    /** Of a transaction. */
    readonly bundleEntries: number
    readonly relationContexts: readonly ScopeContext[]
    readonly scopeContexts: readonly ScopeContext[]
    readonly policyFile: string | undefined
    readonly samplePatients: number
  }
  /** All three URLs and every bind address are loopback. */
  readonly onLoopback: boolean
}

export type Source = 'environment' | 'file' | 'default'

/** Used if `upstreamUrl` is set. */
export interface UpstreamSettings {
  readonly aliases: readonly string[]
  readonly narrowing: 'auto' | 'compartment' | 'parameter'
  readonly profile: 'auto' | 'hapi' | 'post-only' | 'strict'
  readonly searchCache: 'bypass' | 'allow'
  readonly operations: readonly string[]
  readonly searchParameters: readonly string[]
  readonly timeoutSeconds: number
  readonly responseLimitMegabytes: number
  readonly connections: number
  readonly auth: 'none' | 'bearer' | 'basic' | 'client-credentials'
  readonly token: string | undefined
  readonly username: string | undefined
  readonly password: string | undefined
  readonly tokenUrl: string | undefined
  readonly clientId: string | undefined
  readonly clientSecret: string | undefined
  readonly scope: string | undefined
  readonly tlsCert: string | undefined
  readonly tlsKey: string | undefined
  readonly tlsCa: string | undefined
}

/** How traces are exported, by OpenTelemetry's standard variables. */
export interface TelemetrySettings {
  /** The URL for traces, complete. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  /** Describes this service in every span. */
  readonly resource: Readonly<Record<string, string>>
  readonly sampler: Sampler
  readonly everyMs: number
  readonly batchSize: number
  readonly queueSize: number
}

export interface Sampler {
  /** Whether the decision of the caller is followed, if there is one. */
  readonly isParentBased: boolean
  /** The part of the other traces that is sampled. */
  readonly ratio: number
}

export interface SettingRow<T> {
  readonly name: string
  readonly alias?: string
  readonly env: string
  readonly type: SettingType<T>
  /** The default as text, if it is constant. */
  readonly initial?: string
  /** The default in words, if it depends on other settings or there is none. */
  readonly otherwise?: string
  readonly about: string
  readonly secret?: true
  /** The value may contain a password, and is shown without it. */
  readonly hasPassword?: true
  readonly of: (settings: Settings) => unknown
}

/** A setting has its documented variable and the variable derived from its name. They are often the same. */
export function findVariables({ name, env }: Pick<SettingRow<unknown>, 'name' | 'env'>): readonly string[] {
  return [...new Set([env, name.toUpperCase().replace(/[.-]/g, '_')])]
}

/** A secret may also be the content of a file, which `<variable>_FILE` or `<name>-file` names. */
export function mayBeFile({ secret, hasPassword }: SettingRow<unknown>): boolean {
  return secret === true || hasPassword === true
}

export function findFileVariables(row: SettingRow<unknown>): readonly string[] {
  return mayBeFile(row) ? findVariables(row).map(variable => `${variable}_FILE`) : []
}

type Spec<T> = Omit<SettingRow<T>, 'initial' | 'otherwise'>
type Fixed<T> = Spec<T> & { readonly initial: string }
type Open<T> = Spec<T> & { readonly otherwise: string }

export function defineFixed<T>(row: Fixed<T>): Fixed<T> {
  return row
}

export function defineOpen<T>(row: Open<T>): Open<T> {
  return row
}

export type ValueOf<Row> = Row extends Fixed<infer T> ? T : Row extends Open<infer T> ? T | undefined : never
