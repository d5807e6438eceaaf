import type { FastifyBaseLogger } from 'fastify'
import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino'
import { scrub } from '../../core/index.ts'

export type { Logger } from 'pino'

/** Names of properties that may contain a secret if code logs them by mistake; redacted down to the third level. */
const SECRET_NAMES = [
  'authorization',
  'cookie',
  'password',
  'secret',
  'client_secret',
  'client_assertion',
  'access_token',
  'refresh_token',
  'id_token',
  'code_verifier',
  'launch',
  'body',
  'query',
  'headers',
] as const

interface LoggedError {
  readonly type: string
  readonly message: string
  readonly code?: unknown
  readonly stack?: string
  readonly cause?: LoggedError
}

/** Keeps only message, code, stack and cause: libraries attach whole requests and responses to their errors. */
export function serializeError(error: unknown, depth = 0): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: scrub(String(error)) }
  const code = 'code' in error ? error.code : undefined
  return {
    type: error.name,
    message: scrub(error.message),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(error.stack ? { stack: scrub(error.stack) } : {}),
    ...(error.cause !== undefined && depth < 3 ? { cause: serializeError(error.cause, depth + 1) } : {}),
  }
}

function makeOptions(level: string): LoggerOptions {
  return {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: label => ({ level: label }) },
    redact: {
      paths: SECRET_NAMES.flatMap(name => [name, `*.${name}`, `*.*.${name}`]),
      censor: '[redacted]',
    },
    serializers: { err: error => serializeError(error), req: () => undefined, res: () => undefined },
  }
}

/** Creates a logger of JSON lines; the default destination is standard output. */
export function createLogger(
  settings: { readonly level?: string; readonly destination?: DestinationStream } = {},
): Logger {
  const made = makeOptions(settings.level ?? 'info')
  return settings.destination ? pino(made, settings.destination) : pino(made)
}

const followers = new WeakMap<Logger, Logger[]>()

/** Creates a child that lives as long as its parent and follows `setLogLevel`. */
export function createChildLogger(parent: Logger, bindings: Readonly<Record<string, unknown>>): Logger {
  const child = parent.child(bindings)
  followers.set(parent, [...(followers.get(parent) ?? []), child])
  return child
}

export function setLogLevel(logger: Logger, level: string): void {
  logger.level = level
  for (const child of followers.get(logger) ?? []) setLogLevel(child, level)
}

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
/** An outage ends when nothing has failed for this time. */
const ENDS_AFTER_MS = 60_000

interface Outage {
  readonly causes: Set<string>
  failed: number
  loggedAt: number
  lastAt: number
}

/** Logs each cause of an outage once, then once a minute only the number of further failures. */
export function logOutages(
  log: (details: { readonly err?: unknown; readonly failed?: number }) => void,
  clock: () => number = Date.now,
): (error: unknown) => void {
  let outage: Outage | undefined
  return error => {
    const now = clock()
    if (!outage || now - outage.lastAt > ENDS_AFTER_MS)
      outage = { causes: new Set(), failed: 0, loggedAt: now, lastAt: now }
    outage.lastAt = now
    const cause = String(error)
    if (!outage.causes.has(cause)) {
      outage.causes.add(cause)
      return log({ err: error })
    }
    outage.failed++
    if (now - outage.loggedAt < LOG_EVERY_MS) return
    outage.loggedAt = now
    log({ failed: outage.failed })
  }
}
