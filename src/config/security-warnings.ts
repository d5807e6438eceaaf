import { isLoopbackUrl } from './derive.ts'
import { isRedirecting } from './providers/providers.ts'
import type { Settings } from './settings-tree.ts'

type Checked = Pick<
  Settings,
  | 'onLoopback'
  | 'audit'
  | 'auditFeeds'
  | 'databaseUrl'
  | 'allowHttp'
  | 'metrics'
  | 'secret'
  | 'loginFailureLimit'
  | 'loginFailureLimitPerAddress'
  | 'offlineAccessMaxDays'
  | 'accessTokenTtlSeconds'
  | 'loginIdleSeconds'
  | 'openRegistration'
  | 'keyMaxAgeDays'
  | 'minPasswordLength'
> & {
  readonly fhir: Pick<Settings['fhir'], 'policyFile'>
  readonly login: Pick<Settings['login'], 'secondFactor' | 'providers'>
}

interface SecurityWarning {
  readonly code: string
  readonly text: string
}

interface Row {
  readonly text: string
  applies(settings: Checked): boolean
}

/** A random secret has more: 32 bytes in hexadecimal have fewer once in a million times. */
const DIFFERENT_CHARACTERS = 10

/** Ten times the defaults. */
const MANY_FAILURES = 100
const MANY_FAILURES_OF_ADDRESS = 10_000

/** A stolen access token works this long. */
const LONG_TOKEN_SECONDS = 3_600

/** NIST SP 800-63B-4, 3.1.1.2, for passwords that alone sign users in. */
const LENGTH_ALONE = 15

/** Misuse is often found months later. */
const AUDIT_DAYS = 365

/** Settings that are allowed, and that a reviewer of a deployment asks about. */
const WARNINGS: Readonly<Record<string, Row>> = {
  'audit-off': {
    text: 'SMART_AUDIT=false: nothing is recorded.',
    applies: ({ audit }) => !audit.kept,
  },
  'audit-failure': {
    text: 'SMART_AUDIT_FAILURE=allow: requests are answered although they cannot be recorded.',
    applies: ({ audit }) => audit.kept && audit.failure === 'allow',
  },
  'audit-days': {
    text: `SMART_AUDIT_DAYS is below ${AUDIT_DAYS}: set at least a year, or what the law requires of you.`,
    applies: ({ audit }) => audit.kept && audit.days < AUDIT_DAYS,
  },
  'audit-feed': {
    text: 'Neither SMART_AUDIT_FEED_URL nor SMART_AUDIT_SYSLOG_URL is set: no other system has the audit records if somebody removes them here.',
    applies: ({ audit, auditFeeds }) =>
      audit.kept && auditFeeds.fhirUrl === undefined && auditFeeds.syslogUrl === undefined,
  },
  'second-factor': {
    text: 'SMART_LOGIN_SECOND_FACTOR=none: a password alone opens every account, also of administrators.',
    applies: ({ login }) => login.secondFactor === 'none',
  },
  'password-length': {
    text: `SMART_LOGIN_MIN_PASSWORD_LENGTH is below ${LENGTH_ALONE}, and not everybody needs a second factor: set ${LENGTH_ALONE}, or SMART_LOGIN_SECOND_FACTOR=all.`,
    applies: ({ login, minPasswordLength }) =>
      login.secondFactor !== 'all' && minPasswordLength < LENGTH_ALONE,
  },
  'admin-provider': {
    text: 'A sign-in provider names administrators without acr-values: their second factor is not checked here.',
    applies: ({ login }) =>
      login.secondFactor !== 'none' &&
      login.providers.some(
        provider => isRedirecting(provider) && provider.admin && provider.acrValues.length === 0,
      ),
  },
  'offline-access': {
    text: 'SMART_OFFLINE_ACCESS_MAX_DAYS=0 with a sign-in provider: apps with offline_access keep the access of users whom the provider has disabled, until you disable them here.',
    applies: ({ login, offlineAccessMaxDays }) => login.providers.length > 0 && offlineAccessMaxDays === 0,
  },
  'offline-access-local': {
    text: 'SMART_OFFLINE_ACCESS_MAX_DAYS=0: apps with offline_access keep their access for as long as they use it; set a maximum age, such as 365.',
    applies: ({ login, offlineAccessMaxDays }) => login.providers.length === 0 && offlineAccessMaxDays === 0,
  },
  'access-token': {
    text: `SMART_ACCESS_TOKEN_TTL_SECONDS is above ${LONG_TOKEN_SECONDS}: a stolen token works for hours; set at most an hour (default 300).`,
    applies: ({ accessTokenTtlSeconds }) => accessTokenTtlSeconds > LONG_TOKEN_SECONDS,
  },
  'login-idle': {
    text: 'SMART_LOGIN_IDLE_SECONDS=0: a sign-in stays open for 8 hours on a computer that somebody left; set 1800 or less.',
    applies: ({ loginIdleSeconds }) => loginIdleSeconds === 0,
  },
  registration: {
    text: 'SMART_OPEN_REGISTRATION=true: anyone can register an app; remove it, and give developers SMART_REGISTRATION_TOKEN.',
    applies: ({ openRegistration }) => openRegistration,
  },
  'key-age': {
    text: 'SMART_KEY_MAX_AGE_DAYS=0: the signing key is never replaced by itself; set 90, or rotate keys yourself.',
    applies: ({ keyMaxAgeDays }) => keyMaxAgeDays === 0,
  },
  policy: {
    text: 'SMART_POLICY_FILE is not set: every clinician can open every patient.',
    applies: ({ fhir }) => fhir.policyFile === undefined,
  },
  database: {
    text: 'SMART_DATABASE_URL has no sslmode=verify-full: the connection to PostgreSQL may be read or redirected.',
    applies: ({ databaseUrl }) => isUnverified(databaseUrl),
  },
  http: {
    text: 'SMART_ALLOW_HTTP=true: tokens and records may be sent unencrypted.',
    applies: ({ allowHttp }) => allowHttp,
  },
  metrics: {
    text: 'SMART_OPEN_METRICS=true: anyone who can reach a server can read its metrics.',
    applies: ({ metrics }) => metrics.isOpen,
  },
  'failure-limit': {
    text: 'SMART_LOGIN_FAILURE_LIMIT or SMART_LOGIN_FAILURE_LIMIT_PER_ADDRESS is far above its default: passwords can be guessed.',
    applies: ({ loginFailureLimit, loginFailureLimitPerAddress }) =>
      loginFailureLimit > MANY_FAILURES || loginFailureLimitPerAddress > MANY_FAILURES_OF_ADDRESS,
  },
  secret: {
    text: 'SMART_SECRET has few different characters: create it with openssl rand -base64 32.',
    applies: ({ secret }) => secret !== undefined && new Set(secret).size < DIFFERENT_CHARACTERS,
  },
}

/** Settings that make a deployment less secure (SETTING-7). None on loopback. */
export function findSecurityWarnings(settings: Checked): readonly SecurityWarning[] {
  if (settings.onLoopback) return []
  return Object.entries(WARNINGS)
    .filter(([, { applies }]) => applies(settings))
    .map(([code, { text }]) => ({ code, text }))
}

/** A database on this machine needs no encryption. */
function isUnverified(databaseUrl: string): boolean {
  if (!/^postgres(ql)?:/.test(databaseUrl)) return false
  const { host, searchParams } = new URL(databaseUrl)
  if (host === '' || isLoopbackUrl(`http://${host}`)) return false
  return searchParams.get('sslmode') !== 'verify-full'
}
