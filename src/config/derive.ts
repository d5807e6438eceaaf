import { randomBytes } from 'node:crypto'
import { isIPv4, isIPv6 } from 'node:net'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { parseDatabaseUrl } from '../store/index.ts'
import {
  DEFAULT_SCOPES,
  type LoginProvider,
  OIDC_CLAIMS,
  type OidcProvider,
  SINGLE_PROVIDER_ID,
} from './login-providers.ts'
import { readSecret } from './secret-file.ts'
import type { Settings, UpstreamSettings } from './settings.ts'
import type { SettingValues } from './table.ts'

const MOST_DEFAULT_WORKERS = 8

/** Fills in defaults that depend on other settings, and makes every path absolute. */
export function deriveSettings(
  values: SettingValues,
  telemetry: Settings['telemetry'],
  cwd: string,
): Settings {
  const { issuerUrl, fhirBaseUrl, appUrl } = values
  const addressesOnLoopback = [issuerUrl, fhirBaseUrl, appUrl].every(isLoopbackUrl)
  const bind = values.bind ?? (addressesOnLoopback ? ['127.0.0.1', '::1'] : ['0.0.0.0'])
  const onLoopback = addressesOnLoopback && bind.every(isLoopbackHost)
  const dataDir = resolve(cwd, values.dataDir)
  const absolute = (path: string | undefined) => (path === undefined ? undefined : resolve(cwd, path))
  return {
    issuerUrl,
    fhirBaseUrl,
    appUrl,
    smartClientLaunchUrl: values.smartClientLaunchUrl ?? `${appUrl}/launch`,
    defaultClientId: values.defaultClientId,
    defaultNeedPatientBanner: values.defaultNeedPatientBanner,
    accessTokenTtlSeconds: values.accessTokenTtlSeconds,
    databaseUrl: deriveDatabaseUrl(values.databaseUrl, dataDir, cwd),
    dataDir,
    secret: values.secret ?? (onLoopback ? readSecret(dataDir) : undefined),
    seedClinicianPassword: values.seedClinicianPassword ?? seedPassword(onLoopback),
    workers: values.workers ?? (onLoopback ? 1 : Math.min(availableParallelism(), MOST_DEFAULT_WORKERS)),
    authPort: values.authPort ?? readPort(issuerUrl) ?? 9000,
    fhirPort: values.fhirPort ?? readPort(fhirBaseUrl) ?? 8080,
    appPort: values.appPort ?? readPort(appUrl) ?? 8081,
    bind,
    allowedHosts: values.allowedHosts ?? [],
    trustProxy: values.trustProxy,
    tlsCert: absolute(values.tlsCert),
    tlsKey: absolute(values.tlsKey),
    allowHttp: values.allowHttp,
    drainDelaySeconds: values.drainDelaySeconds ?? (onLoopback ? 0 : 3),
    loginFailureLimit: values.loginFailureLimit,
    loginFailureWindowSeconds: values.loginFailureWindowSeconds,
    loginFailureLimitPerAddress: values.loginFailureLimitPerAddress,
    loginIdleSeconds: values.loginIdleSeconds ?? (onLoopback ? 0 : 1800),
    login: deriveLogin(values, absolute),
    cds: deriveCds(values),
    lab: values.lab ?? onLoopback,
    labExposesAllPatients: values.labExposesAllPatients,
    metrics: deriveMetrics(values, bind),
    logLevel: values.logLevel,
    telemetry,
    privateJwksHosts: values.privateJwksHosts ?? [],
    openRegistration: values.openRegistration ?? onLoopback,
    registrationToken: values.registrationToken,
    keyMaxAgeDays: values.keyMaxAgeDays,
    database: {
      poolSize: values.databasePoolSize,
      connectTimeoutSeconds: values.databaseConnectTimeoutSeconds,
      statementTimeoutSeconds: values.databaseStatementTimeoutSeconds,
    },
    audit: {
      kept: values.audit,
      failure: values.auditFailure,
      days: values.auditDays,
      activityClinicians: values.activityClinicians,
    },
    auditFeeds: {
      fhirUrl: values.auditFeedUrl,
      token: values.auditFeedToken,
      syslogUrl: values.auditSyslogUrl,
      tlsCa: absolute(values.auditTlsCa),
      tlsCert: absolute(values.auditTlsCert),
      tlsKey: absolute(values.auditTlsKey),
    },
    app: {
      clientId: values.appClientId,
      authMethod: values.appAuthMethod,
      scope: values.appScope,
      issuers: values.appIssuers ?? [fhirBaseUrl],
      sessionMaxSeconds: values.appSessionMaxSeconds,
      sessionIdleSeconds: values.appSessionIdleSeconds,
      frameOrigins: values.appFrameOrigins ?? [],
      timeoutSeconds: values.appTimeoutSeconds,
    },
    fhir: {
      upstreamUrl: values.fhirUpstreamUrl,
      upstream: deriveUpstream(values, absolute),
      trustedIssuersFile: absolute(values.fhirTrustedIssuersFile),
      smartConfigurationUrl: values.fhirSmartConfigurationUrl,
      searchPermission: values.fhirSearchLetter,
      versionAccess: values.fhirVersionAccess,
      protectedTypes: values.fhirProtectedTypes ?? [],
      bodyLimitMegabytes: values.fhirBodyLimit,
      bundleEntries: values.fhirBundleEntries,
      relationContexts: values.fhirRelationContexts,
      scopeContexts: values.fhirScopeContexts,
      policyFile: absolute(values.fhirPolicyFile),
      samplePatients: values.fhirSamplePatients,
    },
    onLoopback,
  }
}

function deriveMetrics(
  { openMetrics: isOpen, metricsPort: port, metricsBind }: SettingValues,
  bind: readonly string[],
): Settings['metrics'] {
  const access = port !== undefined ? 'nobody' : isOpen ? 'everyone' : 'loopback'
  return { isOpen, port, bind: metricsBind ?? bind, access }
}

function deriveUpstream(
  values: SettingValues,
  absolute: (path: string | undefined) => string | undefined,
): UpstreamSettings {
  return {
    aliases: values.fhirUpstreamAliases ?? [],
    operations: values.fhirUpstreamOperations ?? [],
    searchParameters: values.fhirUpstreamSearchParameters ?? [],
    narrowing: values.fhirUpstreamNarrowing,
    profile: values.fhirUpstreamProfile,
    searchCache: values.fhirUpstreamSearchCache,
    timeoutSeconds: values.fhirUpstreamTimeoutSeconds,
    responseLimitMegabytes: values.fhirUpstreamResponseLimit,
    connections: values.fhirUpstreamConnections,
    auth: values.fhirUpstreamAuth,
    token: values.fhirUpstreamToken,
    username: values.fhirUpstreamUsername,
    password: values.fhirUpstreamPassword,
    tokenUrl: values.fhirUpstreamTokenUrl,
    clientId: values.fhirUpstreamClientId,
    clientSecret: values.fhirUpstreamClientSecret,
    scope: values.fhirUpstreamScope,
    tlsCert: absolute(values.fhirUpstreamTlsCert),
    tlsKey: absolute(values.fhirUpstreamTlsKey),
    tlsCa: absolute(values.fhirUpstreamTlsCa),
  }
}

function deriveLogin(
  values: SettingValues,
  absolute: (path: string | undefined) => string | undefined,
): Settings['login'] {
  const single = {
    issuer: values.loginIssuer,
    clientId: values.loginClientId,
    clientSecret: values.loginClientSecret,
    name: values.loginName,
    fhirUser: values.loginFhirUser,
    allow: values.loginAllow,
    admin: values.loginAdmin,
    provision: values.loginProvision,
  }
  const listed = (values.loginProviders ?? []).map(provider => resolvePaths(provider, absolute))
  return { passwords: values.loginPasswords, providers: [...makeSingleProvider(single), ...listed], single }
}

function deriveCds(values: SettingValues): Settings['cds'] {
  const {
    cdsService: id,
    cdsName: name,
    cdsUrl: url,
    cdsClientId: clientId,
    cdsServices: listed = [],
  } = values
  const isWhole = id !== undefined && url !== undefined && clientId !== undefined
  return {
    services: [...(isWhole ? [{ id, name: name ?? id, url, clientId }] : []), ...listed],
    single: { id, name, url, clientId },
  }
}

function makeSingleProvider(single: Settings['login']['single']): readonly OidcProvider[] {
  const { issuer, clientId, name = 'Single sign-on', ...rest } = single
  if (issuer === undefined || clientId === undefined) return []
  return [
    {
      ...OIDC_CLAIMS,
      ...rest,
      ...{ kind: 'oidc', id: SINGLE_PROVIDER_ID, name, issuer, clientId, scopes: DEFAULT_SCOPES },
      fhirUser: rest.fhirUser ?? { kind: 'claim', claim: 'fhirUser' },
      ...{ clientSecretFile: undefined, clientKeyFile: undefined, acrValues: [], maxAge: undefined },
    },
  ]
}

function resolvePaths(
  provider: LoginProvider,
  absolute: (path: string | undefined) => string | undefined,
): LoginProvider {
  if (provider.kind === 'ldap')
    return {
      ...provider,
      bindPasswordFile: absolute(provider.bindPasswordFile),
      tlsCa: absolute(provider.tlsCa),
    }
  return {
    ...provider,
    clientSecretFile: absolute(provider.clientSecretFile),
    clientKeyFile: absolute(provider.clientKeyFile),
  }
}

function deriveDatabaseUrl(given: string | undefined, dataDir: string, cwd: string): string {
  if (given === undefined) return `sqlite:${resolve(dataDir, 'sallyport.db')}`
  const target = parseDatabaseUrl(given)
  return target?.dialect === 'sqlite' ? `sqlite:${resolve(cwd, target.path)}` : given
}

function seedPassword(onLoopback: boolean): string {
  return onLoopback ? 'sallyport' : randomBytes(12).toString('base64url')
}

function readPort(url: string): number | undefined {
  const { port } = new URL(url)
  return port === '' ? undefined : Number(port)
}

export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  if (isIPv4(bare)) return bare.startsWith('127.')
  if (isIPv6(bare)) return bare === '::1' || /^::ffff:(127\.|7f[0-9a-f]{2}:)/.test(bare)
  // RFC 6761, 6.3: `localhost` and every name under it.
  return bare === 'localhost' || bare.endsWith('.localhost')
}

export function isLoopbackUrl(url: string): boolean {
  return isLoopbackHost(new URL(url).hostname)
}

type HostSettings = Pick<Settings, 'bind' | 'issuerUrl' | 'fhirBaseUrl' | 'appUrl' | 'allowedHosts'>

/**
 * Decides which host names `Host` may contain. A server that listens only on loopback accepts loopback names and
 * configured names: in a DNS rebinding attack, the page sends its own name. Other servers accept any name, because
 * a proxy may send its own.
 */
export function createHostCheck({
  bind,
  issuerUrl,
  fhirBaseUrl,
  appUrl,
  allowedHosts,
}: HostSettings): (host: string) => boolean {
  if (!bind.every(isLoopbackHost)) return () => true
  const urls = [issuerUrl, fhirBaseUrl, appUrl]
  const known = new Set([...urls.map(url => removeBrackets(new URL(url).hostname)), ...allowedHosts])
  return host => known.has(removeBrackets(host)) || isLoopbackHost(host)
}

/** An IPv6 address has brackets in a URL and in `Host`, but not in the settings. */
function removeBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
}
