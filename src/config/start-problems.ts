import { isLoopbackUrl } from './loopback.ts'
import type { Settings, Source } from './settings.ts'
import { type SettingKey, settingsTable } from './table.ts'
import { findUpstreamProblems } from './upstream-settings.ts'

const ADDRESSES = ['issuerUrl', 'fhirBaseUrl', 'appUrl', 'smartClientLaunchUrl'] as const

/** Why servers must not start with these settings (SETTING-7), one phrase each. */
export function findStartProblems(
  settings: Settings,
  sources: ReadonlyMap<SettingKey, Source>,
): readonly string[] {
  return [
    ...tlsProblems(settings),
    ...(settings.fhir.upstreamUrl === undefined ? [] : findUpstreamProblems(settings.fhir.upstream)),
    ...(settings.onLoopback ? [] : offLoopbackProblems(settings, sources)),
  ]
}

/** https addresses promise TLS. Who speaks it is known only when it is us, or a proxy that is named. */
export function findStartWarnings({
  onLoopback,
  tlsCert,
  trustProxy,
  allowHttp,
  bind,
}: Settings): readonly string[] {
  if (onLoopback || allowHttp || tlsCert !== undefined || trustProxy !== undefined) return []
  return [
    `Speaking plain http on ${bind.join(', ')}: set SMART_TLS_CERT and SMART_TLS_KEY, or name the proxy that speaks https in SMART_TRUST_PROXY`,
  ]
}

function tlsProblems({ tlsCert, tlsKey, ...settings }: Settings): readonly string[] {
  if (tlsCert === undefined && tlsKey === undefined) return []
  if (tlsCert === undefined) return ['SMART_TLS_KEY needs SMART_TLS_CERT']
  if (tlsKey === undefined) return ['SMART_TLS_CERT needs SMART_TLS_KEY']
  return (['issuerUrl', 'fhirBaseUrl', 'appUrl'] as const)
    .filter(key => settings[key].startsWith('http:'))
    .map(key => `${variableOf(key)} must be https with SMART_TLS_CERT`)
}

function offLoopbackProblems(
  settings: Settings,
  sources: ReadonlyMap<SettingKey, Source>,
): readonly string[] {
  const missing = ADDRESSES.filter(key => sources.get(key) === 'default').map(variableOf)
  const unsafe = [
    ...ADDRESSES.filter(key => settings[key].startsWith('http:')).map(variableOf),
    ...clearAddresses(settings),
  ]
  return [
    ...missing.map(variable => `${variable} must be set off loopback`),
    ...(settings.secret === undefined ? ['SMART_SECRET must be set off loopback'] : []),
    ...(settings.allowHttp
      ? []
      : unsafe.map(variable => `${variable} must be https off loopback, or set SMART_ALLOW_HTTP=true`)),
  ]
}

/** Where tokens, secrets and records would be sent over the network in clear, besides our own addresses. */
function clearAddresses({ fhir, app, fhirBaseUrl }: Settings): readonly string[] {
  const isClear = (url: string) => url.startsWith('http:') && !isLoopbackUrl(url)
  const { upstreamUrl, upstream } = fhir
  return [
    ...(upstreamUrl !== undefined && isClear(upstreamUrl) ? ['SMART_FHIR_UPSTREAM_URL'] : []),
    ...(upstreamUrl !== undefined &&
    upstream.auth === 'client-credentials' &&
    isClear(upstream.tokenUrl ?? '')
      ? ['SMART_FHIR_UPSTREAM_TOKEN_URL']
      : []),
    ...(app.issuers.some(issuer => issuer !== fhirBaseUrl && isClear(issuer)) ? ['SMART_APP_ISSUERS'] : []),
  ]
}

function variableOf(key: SettingKey): string {
  return settingsTable[key].env
}
