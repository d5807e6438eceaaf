import { BlockList, isIP } from 'node:net'

const PRIVATE_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
] as const

// Of IPv6 only global unicast is public, without what stands for other networks in it (IANA special-purpose registry).
const PUBLIC_V6 = '2000::/3'
const PRIVATE_V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'] as const

const privateV4 = blockList(PRIVATE_V4, 'ipv4')
const privateV6 = blockList(PRIVATE_V6, 'ipv6')
const publicV6 = blockList([PUBLIC_V6], 'ipv6')

/** Whether an IP address is not one of the public internet: private, loopback, link-local, shared, reserved. */
export function isPrivateAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return privateV4.check(address, 'ipv4')
    case 6:
      return !publicV6.check(address, 'ipv6') || privateV6.check(address, 'ipv6')
    default:
      return true
  }
}

function blockList(networks: readonly string[], type: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    list.addSubnet(address, Number(bits), type)
  }
  return list
}
