import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from 'node:dns'
import { isIP } from 'node:net'
import { computeFreshForMs } from './freshness.ts'
import { isPrivateAddress } from './private-address.ts'

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
  readonly clock: () => number
  readonly onFailure?: (reason: string, url: string) => void
  readonly lookup?: typeof dnsLookup
}

const TIMEOUT_MS = 3_000
const LONGEST_BODY = 256 * 1024

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
    const free = policy.privateAllowed || policy.privateHosts.includes(getHost(url))
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
      requestDocument(url).catch(error => {
        policy.onFailure?.(describeError(error), url)
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
    done: (error: Error | null, url: string | LookupAddress[], family?: number) => void,
  ): void => {
    lookup(host, { ...options, all: true }, (error, addresses) => {
      const openAgents = error ? [] : addresses.filter(({ address: url }) => !isPrivateAddress(url))
      const [first] = openAgents
      if (!first) done(error ?? new Error('the address is private'), [])
      else if (options.all) done(null, openAgents)
      else done(null, first.address, first.family)
    })
  }
}

async function readLimited(body: AsyncIterable<Uint8Array> | null): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.length
    if (length > LONGEST_BODY) throw new Error('the response is too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? error.cause.message : error.message
}
