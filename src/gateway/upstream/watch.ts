import { isProblem } from '../../fhir/index.ts'
import type { ReadyCheck } from '../../web/index.ts'
import type { Upstream } from './upstream.ts'

/** Knows whether the upstream is there, by what goes through and, when nothing does, by asking. */
export interface Watch {
  /** Told of every exchange: why the upstream is away, or undefined when it answered. */
  saw(reason: string | undefined): void
  readonly check: ReadyCheck
  start(upstream: Upstream): void
  close(): void
}

const TICK_MS = 1_000
const PROBE_MS = 2_000

/** Away is known within 4 s, and the return within 3 s, whether or not somebody asks for something. */
export function watch(clock: () => number): Watch {
  let state: { readonly reason: string | undefined; readonly at: number } | undefined
  let timer: NodeJS.Timeout | undefined
  let probing: Promise<void> | undefined

  async function probe(upstream: Upstream): Promise<void> {
    const answer = await upstream.probe({ method: 'GET', path: '/metadata', headers: ACCEPT }, PROBE_MS)
    if (isProblem(answer)) state = { reason: state?.reason ?? 'it does not answer', at: clock() }
    else state = { reason: complaintOn(answer.status), at: clock() }
  }

  function probeOnce(upstream: Upstream): Promise<void> {
    probing ??= probe(upstream).finally(() => {
      probing = undefined
    })
    return probing
  }

  let watched: Upstream | undefined
  return {
    saw(reason) {
      state = { reason, at: clock() }
    },
    check: {
      name: 'upstream',
      async check() {
        if (!state && watched) await probeOnce(watched)
        if (state?.reason !== undefined) throw new Error(`the FHIR server behind is away: ${state.reason}`)
      },
    },
    start(upstream) {
      watched = upstream
      timer ??= setInterval(() => {
        if (!state || state.reason !== undefined || clock() - state.at >= TICK_MS) void probeOnce(upstream)
      }, TICK_MS).unref()
    },
    close: () => clearInterval(timer),
  }
}

const ACCEPT = { accept: 'application/fhir+json' }

function complaintOn(status: number): string | undefined {
  if (status < 300) return undefined
  if (status === 401 || status === 403) return 'it does not accept the credentials of the gateway'
  return status >= 500 ? `it answers ${status}` : `its metadata answers ${status}`
}
