import { type Logger, NotReady, type ReadyCheck, scrub } from '../../../web/index.ts'
import { isFailing, isUnauthorized, type RawResponse, type TransportFailure } from './exchange.ts'
import type { Upstream } from './upstream.ts'

/** Knows whether the upstream can be used, by what goes through and, when nothing does, by asking. */
export interface Watch {
  /** Told how every exchange went. */
  saw(answer: RawResponse | TransportFailure): void
  readonly check: ReadyCheck
  start(upstream: Upstream): void
  close(): void
}

/** Why the upstream cannot be used. */
interface Complaint {
  /** Any answer shows that it is not away any more; that it is usable only one to what was refused. */
  readonly kind: 'away' | 'unusable'
  readonly reason: string
  /** For the log alone: it may name hosts. */
  readonly cause?: string
}

const TICK_MS = 1_000
/** Shorter than a tick: the answer to the last probe came after its tick, and would put the next one off. */
const FRESH_MS = 500
const PROBE_MS = 2_000

/**
 * Away is known within 3.5 s, and the return within 3 s, whether or not somebody asks for something. A request that fails
 * does not decide: others may go well, so the upstream is asked at once. The log has a line for each change.
 */
export function watchUpstream(clock: () => number, log?: Pick<Logger, 'warn'>): Watch {
  let state: { readonly complaint: Complaint | undefined; readonly at: number } | undefined
  let timer: NodeJS.Timeout | undefined
  let probing: Promise<void> | undefined
  let watched: Upstream | undefined
  // A request was answered 401, though the metadata may be open to everybody.
  let isDoubted = false

  function settle(complaint: Complaint | undefined): void {
    const before = state?.complaint
    state = { complaint, at: clock() }
    if (complaint?.kind === before?.kind) return
    if (!complaint) log?.warn('Upstream FHIR server recovered')
    else {
      const cause = complaint.cause && { cause: scrub(complaint.cause) }
      log?.warn({ ...cause }, `Upstream FHIR server unavailable: ${complaint.reason}`)
    }
  }

  async function complaintOf(upstream: Upstream): Promise<Complaint | undefined> {
    const onMetadata = complaintOn(await upstream.probe('/metadata', PROBE_MS))
    if (onMetadata || !isDoubted) return onMetadata
    const counted = await upstream.probe('/Patient?_summary=count', PROBE_MS)
    isDoubted = isUnauthorized(counted)
    return isDoubted ? REFUSED : undefined
  }

  function probeOnce(upstream: Upstream): Promise<void> {
    probing ??= complaintOf(upstream)
      .then(settle)
      .finally(() => {
        probing = undefined
      })
    return probing
  }

  return {
    saw(answer) {
      if (isUnauthorized(answer)) isDoubted = true
      else if (!isFailing(answer) && state?.complaint?.kind !== 'unusable') settle(undefined)
      else if (isFailing(answer) && watched && !state?.complaint) void probeOnce(watched)
    },
    check: {
      name: 'upstream',
      async check() {
        if (!state && watched) await probeOnce(watched)
        const complaint = state?.complaint
        if (complaint) throw new NotReady(`the upstream FHIR server is unavailable: ${complaint.reason}`)
      },
    },
    start(upstream) {
      watched = upstream
      timer ??= setInterval(() => {
        const isKnown = state && !state.complaint && !isDoubted && clock() - state.at < FRESH_MS
        if (!isKnown) void probeOnce(upstream)
      }, TICK_MS).unref()
    },
    close: () => clearInterval(timer),
  }
}

const REFUSED: Complaint = { kind: 'unusable', reason: 'it does not accept the credentials of the gateway' }

function complaintOn(answer: RawResponse | TransportFailure): Complaint | undefined {
  if ('failure' in answer) return complaintOnFailure(answer)
  const { status } = answer
  if (status < 300) return undefined
  if (status === 401 || status === 403) return REFUSED
  if (isFailing(answer)) return { kind: 'away', reason: `it answers ${status}` }
  return { kind: 'unusable', reason: `its metadata answers ${status}` }
}

function complaintOnFailure(failure: TransportFailure): Complaint | undefined {
  switch (failure.failure) {
    case 'away':
      return { kind: 'away', reason: 'it does not answer', cause: failure.cause }
    case 'late':
      return { kind: 'away', reason: 'it does not answer in time' }
    case 'unsigned':
      return { kind: 'unusable', reason: 'the gateway gets no access token for it', cause: failure.cause }
    case 'too-large':
      return undefined
  }
}
