import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { fail } from '../../../fhir/index.ts'
import { SHARE_OF_GRANT, UPSTREAM_WAITING_PER_GRANT, WAITING_TIME } from '../limits.ts'
import type { Problem } from '../problem.ts'
import { type Breaker, createBreaker } from './breaker.ts'
import { createDeadlines } from './deadlines.ts'
import { decode, decodeStream, pipe } from './decode.ts'
import {
  isFailing,
  isLate,
  isUnauthorized,
  type RawResponse,
  type TransportFailure,
  type UpstreamRequest,
} from './exchange.ts'
import { type Passing, passOnce, type Sending, sendOnce } from './send.ts'
import { type Caller, type NoSlot, openSlots } from './slots.ts'
import type { Addresses } from './urls.ts'

/** What the upstream answered: unpacked, and with our addresses in the place of its own. */
export interface UpstreamResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface StreamedResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Readable
}

/** The FHIR server that the gateway stands in front of. */
export interface Upstream {
  /** The whole answer, in memory. Without a caller it is a question of the gateway's own. */
  ask(request: UpstreamRequest, caller?: Caller): Promise<UpstreamResponse | Problem>
  /** The answer as it comes, for what has not to be looked at. */
  pass(request: UpstreamRequest, caller?: Caller): Promise<StreamedResponse | Problem>
  /**
   * Sends a request regardless of earlier failures, and waits for half of the time-out. A response closes the circuit; a
   * late one does not open it.
   */
  probe(request: Probe): Promise<RawResponse | TransportFailure>
}

export type Probe = Pick<UpstreamRequest, 'path'> & { readonly method: 'GET' | 'HEAD' }

export interface UpstreamOptions extends Sending {
  readonly connections: number
  readonly addresses: Addresses
  readonly timeoutMs: number
  readonly clock: () => number
  /** Told how every exchange went, but for probes. */
  readonly onExchange: (answer: RawResponse | TransportFailure) => void
  /** Told what is wrong with an answer of the upstream. */
  readonly warn: (text: string) => void
}

const TRIES = 3

export function openUpstream(options: UpstreamOptions): Upstream {
  const { clock, timeoutMs } = options
  const circuit = createBreaker(clock)
  const time = createDeadlines()
  const send = (request: UpstreamRequest, ms: number) => sendOnce(request, ms, time, options)
  const { connections } = options
  // What is sent has some time left to be answered in.
  const waitingMs = timeoutMs * WAITING_TIME
  const slots = openSlots(connections, Math.max(1, Math.floor(connections * SHARE_OF_GRANT)), time)

  function heard<A extends RawResponse | TransportFailure>(answer: A): A {
    observe(answer, circuit, options)
    options.onExchange(answer)
    return answer
  }

  /** Asks again, as long as it may help. */
  async function insist<A extends RawResponse | TransportFailure>(
    request: UpstreamRequest,
    first: A | TransportFailure,
    deadline: number,
    attempt: (request: UpstreamRequest, ms: number) => Promise<A | TransportFailure>,
  ): Promise<A | TransportFailure> {
    let answer = first
    let renewed = false
    for (let tries = 1; ; tries++) {
      // Its own credentials may have ended early: they are renewed once.
      if (isUnauthorized(answer) && !renewed) renewed = true
      else if (!isWorthAnother(request, answer) || tries >= TRIES || clock() >= deadline) return answer
      answer = heard(await attempt(request, Math.max(deadline - clock(), 1)))
    }
  }

  function problemOf(failure: TransportFailure): Problem {
    // What goes on failing is said by the watch, once.
    const warn = circuit.isOpen() ? () => undefined : options.warn
    return problemOn(failure, { ...options, warn })
  }

  return {
    async ask(request, caller = GATEWAY) {
      if (!circuit.admits()) return fail({ problem: 'upstream-unreachable' })
      const began = clock()
      const taken = slots.take(caller, waitingMs)
      const release = taken instanceof Promise ? await taken : taken
      if (typeof release === 'string') return NO_SLOT[release]
      try {
        const deadline = began + timeoutMs
        const first = heard(await send(request, Math.max(deadline - clock(), 1)))
        // Mostly it is well, and there is nothing more to wait for.
        const isFinal = !isUnauthorized(first) && !isWorthAnother(request, first)
        const answer = isFinal ? first : await insist(request, first, deadline, send)
        return 'failure' in answer ? problemOf(answer) : read(answer, options)
      } finally {
        release()
      }
    },
    async pass(request, caller = GATEWAY) {
      if (!circuit.admits()) return fail({ problem: 'upstream-unreachable' })
      const deadline = clock() + timeoutMs
      const release = await slots.take(caller, waitingMs)
      if (typeof release === 'string') return NO_SLOT[release]
      const attempt = (it: UpstreamRequest, ms: number) => passOnce(it, ms, options)
      const first = heard(await attempt(request, Math.max(deadline - clock(), 1)))
      const answer = await insist(request, first, deadline, attempt)
      if ('failure' in answer) {
        release()
        return problemOf(answer)
      }
      answer.stream.once('close', release)
      return unpacked(answer, options)
    },
    async probe(request) {
      const answer = await send({ ...request, headers: { accept: 'application/fhir+json' } }, timeoutMs / 2)
      if (!isLate(answer)) observe(answer, circuit, options)
      return answer
    },
  }
}

const GATEWAY: Caller = { holder: '', connection: { destroyed: false } }

const NO_SLOT = {
  late: fail({ problem: 'upstream-late' }),
  crowded: fail({ problem: 'too-many-waiting', limit: UPSTREAM_WAITING_PER_GRANT }),
} satisfies Record<NoSlot, Problem>

function unpacked(
  { status, headers, stream }: Passing,
  options: UpstreamOptions,
): StreamedResponse | Problem {
  const body = decodeStream(stream, encodingOf(headers))
  if (body) return { status, headers, body: pipe(body, options.addresses.outwardStream()) }
  stream.destroy()
  return broken('its body is packed in a way that cannot be read', options)
}

function read(
  answer: RawResponse,
  options: UpstreamOptions,
): UpstreamResponse | Problem | Promise<UpstreamResponse | Problem> {
  const encoding = encodingOf(answer.headers)
  // Mostly it is not packed, and there is nothing to wait for.
  return encoding === ''
    ? readable(answer, answer.body, options)
    : decode(answer.body, encoding, options.responseLimit).then(body => readable(answer, body, options))
}

function readable(
  { status, headers }: RawResponse,
  body: Buffer | 'too-large' | undefined,
  options: UpstreamOptions,
): UpstreamResponse | Problem {
  if (body === 'too-large') return tooLarge(options)
  if (!body) return broken('its body is packed in a way that cannot be read', options)
  return { status, headers, text: options.addresses.outward(body.toString('utf8')) }
}

/** Only what changes nothing is sent again, and only where nothing came back. */
function isWorthAnother({ method }: UpstreamRequest, answer: RawResponse | TransportFailure): boolean {
  return method === 'GET' && 'failure' in answer && answer.failure === 'away'
}

function observe(
  answer: RawResponse | TransportFailure,
  circuit: Breaker,
  { credentials }: UpstreamOptions,
): void {
  if (isFailing(answer)) circuit.failed()
  else circuit.succeeded()
  if (isUnauthorized(answer)) credentials.forget()
}

function problemOn(failure: TransportFailure, options: UpstreamOptions): Problem {
  switch (failure.failure) {
    case 'away':
      options.warn(`Cannot filter the upstream: ${failure.cause}`)
      return fail({ problem: 'upstream-unreachable' })
    case 'late':
      options.warn(`Cannot wait for the upstream any longer: ${options.timeoutMs} ms have passed`)
      return fail({ problem: 'upstream-late' })
    case 'unsigned':
      options.warn(failure.cause)
      return fail({ problem: 'upstream-unreachable' })
    case 'too-large':
      return tooLarge(options)
  }
}

function broken(why: string, { warn }: UpstreamOptions): Problem {
  warn(`Cannot use an answer of the upstream: ${why}`)
  return fail({ problem: 'upstream-broken', why })
}

function tooLarge({ warn, responseLimit }: UpstreamOptions): Problem {
  const excess = `it is larger than ${responseLimit} bytes`
  warn(`Cannot use an answer of the upstream: ${excess}`)
  return fail({ problem: 'upstream-broken', why: excess, excess })
}

function encodingOf(headers: IncomingHttpHeaders): string {
  return String(headers['content-encoding'] ?? '')
    .trim()
    .toLowerCase()
}
