import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from 'node:dns'
import { isIP } from 'node:net'
import { freshForMs } from './freshness.ts'
import { isPrivateAddress } from './private-address.ts'

/** JSON that was fetched, and how long it may be kept. */
export interface FetchedDocument {
  readonly json: unknown
  readonly freshForMs: number
}

/** Fetches JSON from an address that a client registered; undefined when that is not allowed or fails. */
export type FetchDocument = (url: string) => Promise<FetchedDocument | undefined>

export interface DocumentFetcher {
  readonly fetchDocument: FetchDocument
  close(): Promise<void>
}

export interface OutgoingPolicy {
  /** While this server itself is on loopback, private and loopback addresses are. */
  readonly privateAllowed: boolean
  /** Hosts that may be private all the same. */
  readonly privateHosts: readonly string[]
  readonly clock: () => number
  /** Told why a document was not fetched. */
  readonly onFailure?: (reason: string, address: string) => void
  readonly lookup?: typeof dnsLookup
}

const TIMEOUT_MS = 3_000
const LONGEST_BODY = 256 * 1024

/**
 * Requests to addresses that others named (SSRF): to public addresses only, by https, no redirect followed, little
 * read. The name is resolved once, and what is connected to is the address that was judged, so that a name cannot
 * change its meaning in between.
 */
export function createDocumentFetcher(policy: OutgoingPolicy): DocumentFetcher {
  let agents: Promise<{ readonly guarded: Dispatcher; readonly free: Dispatcher }> | undefined
  const open = async () => {
    const { Agent } = await import('undici')
    const guarded = new Agent({ connect: { lookup: publicLookup(policy.lookup ?? dnsLookup) } })
    return { guarded, free: new Agent() }
  }

  async function request(address: string): Promise<FetchedDocument> {
    const url = new URL(address)
    const free = policy.privateAllowed || policy.privateHosts.includes(hostOf(url))
    if (!free) checkPublic(url)
    agents ??= open()
    const [{ fetch }, dispatchers] = await Promise.all([import('undici'), agents])
    const response = await fetch(url, {
      headers: { accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
      dispatcher: free ? dispatchers.free : dispatchers.guarded,
    })
    if (response.status !== 200) throw new Error(`the answer was ${response.status}`)
    const json: unknown = JSON.parse(await limited(response.body))
    return { json, freshForMs: freshForMs(new Headers([...response.headers]), policy.clock()) }
  }

  return {
    fetchDocument: address =>
      request(address).catch(error => {
        policy.onFailure?.(reasonOf(error), address)
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
  if (url.protocol !== 'https:') throw new Error('the address is not https')
  // A literal address is never looked up.
  if (isIP(hostOf(url)) > 0 && isPrivateAddress(hostOf(url))) throw new Error('the address is private')
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

function publicLookup(lookup: typeof dnsLookup) {
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

async function limited(body: AsyncIterable<Uint8Array> | null): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.length
    if (length > LONGEST_BODY) throw new Error('the answer is too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? error.cause.message : error.message
}
