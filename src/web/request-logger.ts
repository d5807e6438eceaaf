import type { FastifyBaseLogger } from 'fastify'
import type { Logger } from './logger.ts'

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const
type Level = (typeof LEVELS)[number]

/** Creates the child logger only when a request logs something; most never do. */
class RequestLogger {
  readonly #parent: Logger
  readonly #getBindings: () => Readonly<Record<string, unknown>>
  #own: Logger | undefined

  constructor(parent: Logger, getBindings: () => Readonly<Record<string, unknown>>) {
    this.#parent = parent
    this.#getBindings = getBindings
  }

  get level(): string {
    return this.#parent.level
  }

  trace(...values: unknown[]): void {
    this.#log('trace', values)
  }
  debug(...values: unknown[]): void {
    this.#log('debug', values)
  }
  info(...values: unknown[]): void {
    this.#log('info', values)
  }
  warn(...values: unknown[]): void {
    this.#log('warn', values)
  }
  error(...values: unknown[]): void {
    this.#log('error', values)
  }
  fatal(...values: unknown[]): void {
    this.#log('fatal', values)
  }
  silent(): void {}

  child(bindings: Readonly<Record<string, unknown>>): Logger {
    return this.#getOwn().child(bindings)
  }

  #log(level: Level, values: readonly unknown[]): void {
    if (this.#parent.isLevelEnabled(level)) Reflect.apply(this.#getOwn()[level], this.#own, values)
  }
  #getOwn(): Logger {
    this.#own ??= this.#parent.child(this.#getBindings())
    return this.#own
  }
}

export function createRequestLogger(
  parent: Logger,
  getBindings: () => Readonly<Record<string, unknown>>,
): FastifyBaseLogger {
  return new RequestLogger(parent, getBindings) satisfies Pick<
    FastifyBaseLogger,
    Level | 'silent' | 'level'
  > as never
}

/** Interval between log lines during an outage. */
const LOG_EVERY_MS = 60_000
/** An outage ends when no request has failed for this time. */
const ENDS_AFTER_MS = 60_000

/** Logs the first failure of an outage with its cause, then only the number of failed requests. */
export function logOutages(log: FastifyBaseLogger, clock: () => number): (error: unknown) => void {
  let outage: { failed: number; loggedAt: number; lastAt: number } | undefined
  return error => {
    const now = clock()
    if (!outage || now - outage.lastAt > ENDS_AFTER_MS) {
      outage = { failed: 0, loggedAt: now, lastAt: now }
      log.error({ err: error }, 'Database unavailable: requests get 503')
      return
    }
    outage.failed++
    outage.lastAt = now
    if (now - outage.loggedAt < LOG_EVERY_MS) return
    outage.loggedAt = now
    log.error({ failed: outage.failed }, 'Database still unavailable')
  }
}
