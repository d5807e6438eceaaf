import { isIPv4, isIPv6 } from 'node:net'
import type { Settings } from './settings.ts'

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
  const known = new Set([...urls.map(url => bareHost(new URL(url).hostname)), ...allowedHosts])
  return host => known.has(bareHost(host)) || isLoopbackHost(host)
}

/** An IPv6 address has brackets in a URL and in `Host`, but not in the settings. */
function bareHost(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
}
