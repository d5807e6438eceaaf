import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from 'node:dns'
import { BlockList, isIP } from 'node:net'
import { DAY_MS, describeError, readWhole } from '../../core/index.ts'

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

// Of IPv6 only global unicast is public, except ranges that map to other networks (IANA special-purpose registry).
const PUBLIC_V6 = '2000::/3'

const PRIVATE_V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'] as const

const privateV4 = createBlockList(PRIVATE_V4, 'ipv4')

const privateV6 = createBlockList(PRIVATE_V6, 'ipv6')

const publicV6 = createBlockList([PUBLIC_V6], 'ipv6')

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

function createBlockList(networks: readonly string[], type: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    list.addSubnet(address, Number(bits), type)
  }
  return list
}

const MAX_FRESH_MS = DAY_MS

/** RFC 9111, 4.2.2: without headers the cache decides. */
const UNSAID_MS = 60_000

/** RFC 9111, 4.2. */
export function computeFreshForMs(headers: Headers, now: number): number {
  const directives = (headers.get('cache-control') ?? '')
    .toLowerCase()
    .split(',')
    .map(part => part.trim())
  if (directives.includes('no-store') || directives.includes('no-cache')) return 0
  const maxAge = directives.map(part => /^max-age="?(\d{1,10})"?$/.exec(part)?.[1]).find(Boolean)
  if (maxAge !== undefined) return clamp((Number(maxAge) - readAge(headers)) * 1000)
  const expires = headers.get('expires')
  if (expires === null) return headers.has('cache-control') ? 0 : UNSAID_MS
  // RFC 9111, 5.3: an invalid date (`0`) means expired.
  const expiresAt = /GMT$/.test(expires) ? Date.parse(expires) : Number.NaN
  return Number.isNaN(expiresAt) ? 0 : clamp(expiresAt - now)
}

function readAge(headers: Headers): number {
  const age = Number(headers.get('age') ?? 0)
  return Number.isFinite(age) ? age : 0
}

function clamp(ms: number): number {
  return Math.min(Math.max(ms, 0), MAX_FRESH_MS)
}

export interface FetchedDocument {
  readonly json: unknown
  readonly freshForMs: number
}

/** Fetches JSON from a URL that a client registered. Undefined if that is not allowed or fails. */
export type FetchDocument = (url: string) => Promise<FetchedDocument | undefined>

export interface DocumentFetcher {
  readonly fetchDocument: FetchDocument
  close(): Promise<void>
}

export interface OutgoingPolicy {
  /** Whether private and loopback addresses are allowed, as on a server that is itself on loopback. */
  readonly privateAllowed: boolean
  /** Hosts that may have private addresses. */
  readonly privateHosts: readonly string[]
  /** The only URL of its host that may have a private address, unless the host is listed. */
  readonly privateUrl: string
  readonly clock: () => number
  readonly onFailure?: (reason: string, url: string) => void
  readonly lookup?: typeof dnsLookup
}

const TIMEOUT_MS = 3_000
const MAX_BODY_BYTES = 256 * 1024

/**
 * Fetches URLs that others registered, without server-side request forgery: public addresses and https only, no redirects,
 * a limited response. The connection uses the address that was checked, so that the DNS name cannot change in between.
 */
export function createDocumentFetcher(policy: OutgoingPolicy): DocumentFetcher {
  let agents: Promise<{ readonly guarded: Dispatcher; readonly free: Dispatcher }> | undefined
  const openAgents = async () => {
    const { Agent } = await import('undici')
    const guarded = new Agent({ connect: { lookup: createPublicLookup(policy.lookup ?? dnsLookup) } })
    return { guarded, free: new Agent() }
  }

  async function requestDocument(address: string): Promise<FetchedDocument> {
    const url = new URL(address)
    const isOwn = url.href === new URL(policy.privateUrl).href
    const free = policy.privateAllowed || isOwn || policy.privateHosts.includes(getHost(url))
    if (!free) checkPublic(url)
    agents ??= openAgents()
    const [{ fetch }, dispatchers] = await Promise.all([import('undici'), agents])
    const response = await fetch(url, {
      headers: { accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
      dispatcher: free ? dispatchers.free : dispatchers.guarded,
    })
    if (response.status !== 200) throw new Error(`the response status is ${response.status}`)
    const json: unknown = JSON.parse(await readLimited(response.body))
    return { json, freshForMs: computeFreshForMs(new Headers([...response.headers]), policy.clock()) }
  }

  return {
    fetchDocument: url =>
      requestDocument(url).catch((error: Error) => {
        policy.onFailure?.(describeError(error.cause ?? error), url)
        return undefined
      }),
    async close() {
      const opened = await agents
      await Promise.all([opened?.guarded.destroy(), opened?.free.destroy()])
    },
  }
}

type Dispatcher = import('undici').Agent

function checkPublic(url: URL): void {
  if (url.protocol !== 'https:') throw new Error('the URL is not https')
  // An IP literal is not looked up.
  if (isIP(getHost(url)) > 0 && isPrivateAddress(getHost(url))) throw new Error('the address is private')
}

function getHost({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

function createPublicLookup(lookup: typeof dnsLookup) {
  return (
    host: string,
    options: LookupOptions,
    done: (error: Error | null, address: string | LookupAddress[], family?: number) => void,
  ): void => {
    lookup(host, { ...options, all: true }, (error, addresses) => {
      const open = error ? [] : addresses.filter(({ address }) => !isPrivateAddress(address))
      const [first] = open
      if (!first) done(error ?? new Error('the address is private'), [])
      else if (options.all) done(null, open)
      else done(null, first.address, first.family)
    })
  }
}

/** Reads a body of at most 256 kB as text. */
export async function readLimited(body: AsyncIterable<Uint8Array> | null): Promise<string> {
  const bytes = await readWhole(body, MAX_BODY_BYTES)
  if (!bytes) throw new Error('the response is too long')
  return bytes.toString()
}
