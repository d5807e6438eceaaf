import { isLoopbackHost } from './loopback.ts'
import type { Settings } from './settings.ts'

export type HostSettings = Pick<Settings, 'bind' | 'issuerUrl' | 'fhirBaseUrl' | 'appUrl' | 'allowedHosts'>

/**
 * Tells which host names a request may have in `Host`. A server that listens on loopback only accepts loopback names and
 * those of the settings: a page whose name was pointed at this machine (DNS rebinding) still sends its own name. Other
 * servers accept any name, since a proxy may send one of its own.
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
  const known = new Set([...urls.map(url => bareHost(new URL(url).hostname)), ...allowedHosts])
  return host => known.has(bareHost(host)) || isLoopbackHost(host)
}

/** An IPv6 address has brackets in a URL and in `Host`, and none in the settings. */
function bareHost(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
}
