import type { IncomingMessage } from 'node:http'
import type { AuditRecord } from '../../audit-record/index.ts'
import type { Interaction, Misunderstood } from '../../fhir/index.ts'
import type { HostOptions } from '../interceptor.ts'
import type { HostExchange } from './check-exchange.ts'
import { type Observed, type ObserverOptions, observe } from './observe.ts'

interface Observer {
  /** Observes a request once. Undefined if nobody wants its records; `no-room` if it must be refused. */
  observeExchange(
    exchange: Omit<HostExchange, 'body'>,
    interaction: Interaction | Misunderstood,
  ): Observed | 'no-room' | undefined
  findObserved(request: IncomingMessage): Observed | undefined
}

/** Passes the records of requests to the host's `onDecision` and `trail`. */
export function createObserver(
  { onDecision, trail, onError = () => {}, clock = Date.now }: HostOptions,
  base: Pick<ObserverOptions, 'baseUrl' | 'basePath'>,
): Observer {
  const listeners = [onDecision, trail && ((record: AuditRecord) => trail.send(record))]
    .filter(it => it !== undefined)
    .map(listener => tellSafely(listener, onError))
  const record = (records: readonly AuditRecord[]) => {
    for (const tell of listeners) for (const one of records) tell(one)
  }
  const observed = new WeakMap<IncomingMessage, Observed>()
  const findObserved = (request: IncomingMessage) => observed.get(request)
  return {
    findObserved,
    observeExchange(exchange, interaction) {
      const known = findObserved(exchange.request)
      if (known || listeners.length === 0) return known
      if (trail && !trail.hasRoom()) return 'no-room'
      const begun = observe(exchange, interaction, { ...base, clock, record, onError })
      observed.set(exchange.request, begun)
      return begun
    },
  }
}

/** A listener cannot break anything: its errors are reported, once until it succeeds again. */
function tellSafely(
  listener: (record: AuditRecord) => unknown,
  onError: (error: unknown) => void,
): (record: AuditRecord) => void {
  let isFailing = false
  const succeed = () => {
    isFailing = false
  }
  const fail = (error: unknown) => {
    if (!isFailing) onError(error)
    isFailing = true
  }
  return record => {
    try {
      const result = listener(record)
      if (result instanceof Promise) result.then(succeed, fail)
      else succeed()
    } catch (error) {
      fail(error)
    }
  }
}
