import { accessSync, constants } from 'node:fs'
import { findColourProblems } from './brand-colours.ts'
import { isLoopbackUrl } from './derive.ts'
import { findLogoProblems } from './logo-file.ts'
import { describeProvider, findProviderConflicts, type LoginProvider } from './providers/providers.ts'
import type { SettingKey, SettingSource, Settings, UpstreamSettings } from './settings-tree.ts'
import { settingsTable } from './table.ts'

const NEEDED = {
  none: [],
  bearer: ['token'],
  basic: ['username', 'password'],
  'client-credentials': ['tokenUrl', 'clientId', 'clientSecret'],
} as const satisfies Record<UpstreamSettings['auth'], readonly (keyof UpstreamSettings)[]>

function findUpstreamProblems(
  { fhir: { upstream }, fhirBaseUrl, fhirPort }: Settings,
  upstreamUrl: string,
): readonly string[] {
  const missing = NEEDED[upstream.auth].filter(key => upstream[key] === undefined)
  return [
    ...missing.map(
      key => `SMART_FHIR_UPSTREAM_AUTH=${upstream.auth} needs ${getVariable(`fhir.upstream.${key}`)}`,
    ),
    ...findPairProblems('SMART_FHIR_UPSTREAM_TLS', upstream),
    ...when(
      isSameServer(upstreamUrl, fhirBaseUrl) || isOwnPort(upstreamUrl, fhirPort),
      'SMART_FHIR_UPSTREAM_URL names the gateway itself: expected the URL of the FHIR server behind it',
    ),
  ]
}

function isSameServer(a: string, b: string): boolean {
  const one = new URL(a)
  const other = new URL(b)
  const isSameHost =
    one.host === other.host || (isLoopbackUrl(a) && isLoopbackUrl(b) && one.port === other.port)
  return isSameHost && one.pathname.replace(/\/+$/, '') === other.pathname.replace(/\/+$/, '')
}

/** The gateway listens on every loopback address, or on none that another server can have. */
function isOwnPort(url: string, port: number): boolean {
  return isLoopbackUrl(url) && new URL(url).port === String(port)
}

/** A certificate and its key belong together. */
function findPairProblems(
  prefix: string,
  { tlsCert, tlsKey }: Pick<Settings, 'tlsCert' | 'tlsKey'>,
): readonly string[] {
  return [
    ...when(tlsCert !== undefined && tlsKey === undefined, `${prefix}_CERT needs ${prefix}_KEY`),
    ...when(tlsKey !== undefined && tlsCert === undefined, `${prefix}_KEY needs ${prefix}_CERT`),
  ]
}

function when(isWrong: boolean, problem: string): readonly string[] {
  return isWrong ? [problem] : []
}

/** Beyond these values, one request would block the embedded server for too long. */
const EMBEDDED_MEGABYTES = 8
const EMBEDDED_ENTRIES = 1_000

function findEmbeddedProblems({ fhir }: Settings): readonly string[] {
  const refuseAbove = (variable: string, value: number | undefined, max: number) =>
    when(value !== undefined && value > max, `${variable}: the embedded FHIR server accepts at most ${max}`)
  return [
    ...refuseAbove('SMART_FHIR_BODY_LIMIT_MB', fhir.bodyLimitMegabytes, EMBEDDED_MEGABYTES),
    ...refuseAbove('SMART_FHIR_BINARY_LIMIT_MB', fhir.binaryLimitMegabytes, EMBEDDED_MEGABYTES),
    ...refuseAbove('SMART_FHIR_BUNDLE_ENTRIES', fhir.bundleEntries, EMBEDDED_ENTRIES),
  ]
}

function findFeedProblems({ auditFeeds, allowHttp }: Settings): readonly string[] {
  return [
    ...when(
      !allowHttp && isClear(auditFeeds.fhirUrl),
      'SMART_AUDIT_FEED_URL must use https, or set SMART_ALLOW_HTTP=true',
    ),
    ...findPairProblems('SMART_AUDIT_TLS', auditFeeds),
  ]
}

function findLoginProblems({ login, allowHttp }: Settings): readonly string[] {
  const { providers, passwords, order } = login
  const known = new Set([...(passwords ? ['password'] : []), ...providers.map(({ id }) => id)])
  return [
    ...when(
      known.size <= providers.length && passwords,
      'a sign-in provider cannot have the id “password”: choose another',
    ),
    ...order
      .filter(method => !known.has(method))
      .map(
        method =>
          `SMART_LOGIN_ORDER names ${method}, which is not a sign-in method in use (${[...known].join(', ')})`,
      ),
    ...findProviderConflicts(providers),
    ...when(!passwords && providers.length === 0, 'SMART_LOGIN_PASSWORDS=false needs a sign-in provider'),
    ...providers.flatMap(provider => [
      ...findFileProblems(provider),
      ...when(
        !allowHttp && isClear(describeProvider(provider).url),
        `sign-in provider ${provider.id} must use https or ldaps, or set SMART_ALLOW_HTTP=true`,
      ),
    ]),
  ]
}

function findCdsProblems({ cds, allowHttp }: Settings): readonly string[] {
  return cds.services.flatMap(service =>
    when(
      !allowHttp && isClear(service.url),
      `CDS service ${service.id} must use https, or set SMART_ALLOW_HTTP=true`,
    ),
  )
}

/** Whether whatever is sent to a URL is not encrypted on its way. */
function isClear(url: string | undefined): boolean {
  return url !== undefined && /^(?:http|ldap):/.test(url) && !isLoopbackUrl(url)
}

/** The files are read when they are needed, so that a changed secret takes effect; here only that it will work. */
function findFileProblems(provider: LoginProvider): readonly string[] {
  return describeProvider(provider).files.flatMap(file =>
    when(file !== undefined && !isReadable(file), `sign-in provider ${provider.id} cannot read ${file}`),
  )
}

function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK)
    return true
  } catch {
    return false
  }
}

const ADDRESSES = ['issuerUrl', 'fhirBaseUrl', 'appUrl', 'smartClientLaunchUrl'] as const

/** Why servers must not start with these settings (SETTING-7), one phrase each. */
export function findStartProblems(
  settings: Settings,
  sources: ReadonlyMap<SettingKey, SettingSource>,
): readonly string[] {
  return [
    ...findTlsProblems(settings),
    ...(settings.fhir.upstreamUrl === undefined
      ? findEmbeddedProblems(settings)
      : findUpstreamProblems(settings, settings.fhir.upstreamUrl)),
    ...findLoginProblems(settings),
    ...findFeedProblems(settings),
    ...findCdsProblems(settings),
    ...findFrameProblems(settings),
    ...findBrandProblems(settings),
    ...findLabProblems(settings),
    ...(settings.onLoopback ? [] : findOffLoopbackProblems(settings, sources)),
  ]
}

function findBrandProblems({ brand }: Settings): readonly string[] {
  return [
    ...findColourProblems(brand),
    ...when(
      brand.darkColour !== undefined && brand.colour === undefined,
      'SMART_BRAND_DARK_COLOUR needs SMART_BRAND_COLOUR',
    ),
    ...findLogoProblems(brand.logo),
  ]
}

export function findStartWarnings(settings: Settings): readonly string[] {
  return settings.onLoopback ? [] : [...findPlainHttp(settings), ...findLab(settings)]
}

function findLab({ lab }: Settings): readonly string[] {
  return when(lab, 'SMART_LAB=true: administrators can open every record as any user, without a sign-in')
}

/** Why the lab must not be used off loopback (SETTING-9). `SMART_ALLOW_HTTP` does not count. */
export function findLabProblems(settings: Settings): readonly string[] {
  const { lab, onLoopback, labExposesAllPatients, tlsCert, trustProxy } = settings
  if (!lab || onLoopback) return []
  const clear = ADDRESSES.filter(key => settings[key].startsWith('http:')).map(getVariable)
  return [
    ...when(
      !labExposesAllPatients,
      'SMART_LAB=true off loopback needs SMART_LAB_EXPOSES_ALL_PATIENTS=true: the lab opens every record',
    ),
    ...clear.map(variable => `${variable} must be https off loopback with SMART_LAB=true`),
    ...when(
      tlsCert === undefined && trustProxy === undefined,
      'SMART_LAB=true off loopback needs https: set SMART_TLS_CERT and SMART_TLS_KEY, or SMART_TRUST_PROXY',
    ),
  ]
}

/** https URLs require TLS. It is certain only if this process or a configured proxy terminates it. */
function findPlainHttp({ tlsCert, trustProxy, allowHttp, bind }: Settings): readonly string[] {
  return when(
    !allowHttp && tlsCert === undefined && trustProxy === undefined,
    `Serving plain http on ${bind.join(', ')}: set SMART_TLS_CERT and SMART_TLS_KEY, or set SMART_TRUST_PROXY to the proxy that terminates https`,
  )
}

function findTlsProblems(settings: Settings): readonly string[] {
  if (settings.tlsCert === undefined || settings.tlsKey === undefined)
    return findPairProblems('SMART_TLS', settings)
  return (['issuerUrl', 'fhirBaseUrl', 'appUrl'] as const)
    .filter(key => settings[key].startsWith('http:'))
    .map(key => `${getVariable(key)} must be https with SMART_TLS_CERT`)
}

/** Browsers accept `SameSite=None` only from https and from loopback. */
function findFrameProblems({ app, appUrl }: Settings): readonly string[] {
  const isTrustworthy = appUrl.startsWith('https:') || isLoopbackUrl(appUrl)
  return when(
    app.frameOrigins.length > 0 && !isTrustworthy,
    'SMART_APP_URL must be https with SMART_APP_FRAME_ORIGINS',
  )
}

function findOffLoopbackProblems(
  settings: Settings,
  sources: ReadonlyMap<SettingKey, SettingSource>,
): readonly string[] {
  const missing = ADDRESSES.filter(key => sources.get(key) === 'default').map(getVariable)
  const unsafe = [
    ...ADDRESSES.filter(key => settings[key].startsWith('http:')).map(getVariable),
    ...listHttpUrls(settings),
  ]
  return [
    ...missing.map(variable => `${variable} must be set off loopback`),
    ...when(settings.secret === undefined, 'SMART_SECRET must be set off loopback'),
    ...(settings.allowHttp
      ? []
      : unsafe.map(variable => `${variable} must be https off loopback, or set SMART_ALLOW_HTTP=true`)),
  ]
}

/** Other URLs to which tokens, secrets or records would be sent unencrypted. */
function listHttpUrls({ fhir, app, fhirBaseUrl }: Settings): readonly string[] {
  const { upstreamUrl, upstream } = fhir
  const usesToken = upstreamUrl !== undefined && upstream.auth === 'client-credentials'
  return [
    ...when(isClear(upstreamUrl), 'SMART_FHIR_UPSTREAM_URL'),
    ...when(usesToken && isClear(upstream.tokenUrl), 'SMART_FHIR_UPSTREAM_TOKEN_URL'),
    ...when(
      app.issuers.some(issuer => issuer !== fhirBaseUrl && isClear(issuer)),
      'SMART_APP_ISSUERS',
    ),
  ]
}

function getVariable(key: SettingKey): string {
  return settingsTable[key].env
}
