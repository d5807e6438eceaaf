import { isIPv4, isIPv6 } from 'node:net'

/** Whether a host, as a URL or a bind address has it, is this machine itself and nothing else. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  if (isIPv4(bare)) return bare.startsWith('127.')
  if (isIPv6(bare)) return bare === '::1' || /^::ffff:(127\.|7f[0-9a-f]{2}:)/.test(bare)
  // RFC 6761, 6.3: `localhost` and every name under it.
  return bare === 'localhost' || bare.endsWith('.localhost')
}

/** Whether an address leads to this machine itself. */
export function isLoopbackUrl(url: string): boolean {
  return isLoopbackHost(new URL(url).hostname)
}
