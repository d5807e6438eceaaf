import { setTimeout } from 'node:timers/promises'
import { isFailure, scrub } from '../../../core/index.ts'
import { type Logger, NotReady, type ReadyCheck } from '../../../web/http/index.ts'
import { PROBE_EVERY_MS } from '../limits.ts'
import type { ProbeRequest, Upstream } from './client.ts'
import { type ExchangeOutcome, isFailing, isLate, isUnauthorized, type TransportFailure } from './exchange.ts'

/** Knows whether the upstream is available, by the responses to requests and, while there are none, by probes. */
export interface Watch {
  /** Takes the result of every exchange except probes and those that the caller has ended. */
  observe(answer: ExchangeOutcome): void
  readonly check: ReadyCheck
  /** Undefined until the first probe. */
  isAvailable(): boolean | undefined
  /** Resolves after the first probe. */
  start(upstream: Upstream): Promise<void>
  close(): void
}

export interface WatchOptions {
  readonly clock: () => number
  readonly log?: Pick<Logger, 'warn'> | undefined
  /** Called when the upstream is found available at the start, and after each outage. */
  readonly onAvailable?: () => void
  /** How the gateway uses the upstream, for `/readyz`. */
  readonly describe?: () => string
}

/** Why the upstream is unavailable. */
interface Outage {
  /** Any response ends `away`; `unusable` ends only with a response to the request that was refused. */
  readonly kind: 'unreachable' | 'unusable'
  readonly reason: string
  /** Only for the log: it may name hosts. */
  readonly cause?: string
}

const COUNT: ProbeRequest = { method: 'GET', path: '/Patient?_summary=count&_count=0' }
/** HAPI answers the first three in 10 to 50 ms, and the whole `metadata` (1.8 MB) in 200 ms. */
const PROBES: readonly ProbeRequest[] = [
  { method: 'HEAD', path: '/metadata' },
  { method: 'GET', path: '/metadata?_elements=status,fhirVersion' },
  COUNT,
  { method: 'GET', path: '/metadata' },
]

/** Shorter than the interval: the response to the last probe arrived after its tick, and would postpone the next one. */
const IDLE_MS = PROBE_EVERY_MS / 2
/** How old the state is at most when `/readyz` reports it (START-4). */
const FRESH_MS = 1_000
/** How long `/readyz` waits for a probe before it reports the last known state. */
const PATIENCE_MS = 500

/**
 * Probes an idle upstream at intervals, and at once when a request fails or `/readyz` is requested. A failed request alone
 * does not decide, because others may succeed. The log gets one line for each change.
 */
export function watchUpstream({ clock, log, onAvailable, describe }: WatchOptions): Watch {
  let state: { readonly outage: Outage | undefined; readonly at: number } | undefined
  let timer: NodeJS.Timeout | undefined
  let probing: Promise<void> | undefined
  let watched: Upstream | undefined
  // A request got a 401, although the metadata may be public.
  let isUnverified = false
  let [probe = COUNT] = PROBES

  function setState(outage: Outage | undefined): void {
    const before = state
    state = { outage, at: clock() }
    if (!outage && (!before || before.outage)) onAvailable?.()
    if (outage?.kind === before?.outage?.kind) return
    if (outage) logOutage(outage)
    else log?.warn('Upstream FHIR server recovered')
  }

  function logOutage({ cause, reason }: Outage): void {
    log?.warn({ ...(cause && { cause: scrub(cause) }) }, `Upstream FHIR server unavailable: ${reason}`)
  }

  /** Sends the probe that worked the last time. Where the upstream does not offer it, the next one replaces it. */
  async function sendProbe(upstream: Upstream, tries = PROBES.length): Promise<ExchangeOutcome> {
    const answer = await upstream.probe(probe)
    const next = findNext(probe, answer)
    if (!next || tries === 1) return answer
    probe = next
    return sendProbe(upstream, tries - 1)
  }

  async function findOutage(upstream: Upstream): Promise<Outage | undefined> {
    const before = state
    const answer = await sendProbe(upstream)
    // Requests that succeeded meanwhile show that only the probe is slow.
    if (isLate(answer) && state !== before && !state?.outage) return undefined
    const outage = readOutage(answer)
    if (outage || !isUnverified) return outage
    isUnverified = isUnauthorized(await upstream.probe(COUNT))
    return isUnverified ? REFUSED : undefined
  }

  function probeOnce(upstream: Upstream): Promise<void> {
    probing ??= findOutage(upstream)
      .then(setState)
      .finally(() => {
        probing = undefined
      })
    return probing
  }

  function isFresh(ms: number): boolean {
    return state !== undefined && !isUnverified && clock() - state.at < ms
  }

  return {
    observe(answer) {
      if (isUnauthorized(answer)) isUnverified = true
      else if (!isFailing(answer) && state?.outage?.kind !== 'unusable') setState(undefined)
      else if (isFailing(answer) && watched && !state?.outage) void probeOnce(watched)
    },
    isAvailable: () => state && !state.outage,
    check: {
      name: 'upstream',
      async check() {
        if (watched && !state) await probeOnce(watched)
        else if (watched && !isFresh(FRESH_MS))
          await Promise.race([probeOnce(watched), setTimeout(PATIENCE_MS, undefined, { ref: false })])
        const outage = state?.outage
        if (outage) throw new NotReady(`the upstream FHIR server is unavailable: ${outage.reason}`)
        return describe?.()
      },
    },
    start(upstream) {
      watched = upstream
      timer ??= setInterval(() => {
        if (!isFresh(IDLE_MS)) void probeOnce(upstream)
      }, PROBE_EVERY_MS).unref()
      return probeOnce(upstream)
    },
    close: () => clearInterval(timer),
  }
}

const REFUSED: Outage = { kind: 'unusable', reason: 'it does not accept the credentials of the gateway' }

/** If `metadata` is late or refused, a count shows whether other requests are: a proxy may refuse `metadata` alone. */
function findNext(probe: ProbeRequest, answer: ExchangeOutcome): ProbeRequest | undefined {
  if (isLate(answer) || isRefused(answer)) return probe === COUNT ? undefined : COUNT
  return isNotOffered(answer) ? PROBES[PROBES.indexOf(probe) + 1] : undefined
}

function isRefused(answer: ExchangeOutcome): boolean {
  return isUnauthorized(answer) || (!isFailure(answer) && answer.status === 403)
}

function isNotOffered(answer: ExchangeOutcome): boolean {
  return !isFailure(answer) && answer.status >= 300 && !isFailing(answer)
}

function readOutage(answer: ExchangeOutcome): Outage | undefined {
  if (isFailure(answer)) return explainOutage(answer)
  const { status } = answer
  if (status < 300) return undefined
  if (status === 401) return REFUSED
  if (status === 403) return { kind: 'unusable', reason: 'it refuses the requests of the gateway (403)' }
  const reason = `it answers ${status}`
  return { kind: isFailing(answer) ? 'unreachable' : 'unusable', reason }
}

function explainOutage(failure: TransportFailure): Outage | undefined {
  switch (failure.reason) {
    case 'unreachable':
      return { kind: 'unreachable', reason: 'it does not answer', cause: failure.cause }
    case 'late':
      return { kind: 'unreachable', reason: 'it does not answer in time' }
    case 'unsigned':
      return { kind: 'unusable', reason: 'the gateway gets no access token for it', cause: failure.cause }
    case 'too-large':
    case 'abandoned':
      return undefined
  }
}
