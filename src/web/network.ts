import { isIPv6 } from 'node:net'

/**
 * Returns the network by which requests are counted: an IPv4 address itself, or the first 64 bits of an IPv6 address,
 * which one subscriber has (RFC 6177).
 */
export function findNetwork(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined || !isIPv6(address)) return mapped ?? address
  const [plain = ''] = address.split('%')
  const [head = '', tail] = plain.split('::')
  const groups = head.split(':').filter(group => group !== '')
  const rest = tail?.split(':').filter(group => group !== '') ?? []
  const zeros = Array.from({ length: 8 - groups.length - rest.length }, () => '0')
  const all = tail === undefined ? groups : [...groups, ...zeros, ...rest]
  return `${all
    .slice(0, 4)
    .map(group => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
