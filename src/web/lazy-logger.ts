import type { FastifyBaseLogger } from 'fastify'
import type { Logger } from './logger.ts'

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const
type Level = (typeof LEVELS)[number]

/** The logger of a request. It is made when something is logged, which for most requests is never. */
class LazyLogger {
  readonly #parent: Logger
  readonly #bindings: Readonly<Record<string, unknown>>
  #own: Logger | undefined

  constructor(parent: Logger, bindings: Readonly<Record<string, unknown>>) {
    this.#parent = parent
    this.#bindings = bindings
  }

  get level(): string {
    return this.#parent.level
  }

  trace(...words: unknown[]): void {
    this.#log('trace', words)
  }

  debug(...words: unknown[]): void {
    this.#log('debug', words)
  }

  info(...words: unknown[]): void {
    this.#log('info', words)
  }

  warn(...words: unknown[]): void {
    this.#log('warn', words)
  }

  error(...words: unknown[]): void {
    this.#log('error', words)
  }

  fatal(...words: unknown[]): void {
    this.#log('fatal', words)
  }

  silent(): void {}

  child(bindings: Readonly<Record<string, unknown>>): Logger {
    return this.#made().child(bindings)
  }

  #log(level: Level, words: readonly unknown[]): void {
    if (this.#parent.isLevelEnabled(level)) Reflect.apply(this.#made()[level], this.#own, words)
  }

  #made(): Logger {
    this.#own ??= this.#parent.child(this.#bindings)
    return this.#own
  }
}

export function lazyLogger(parent: Logger, bindings: Readonly<Record<string, unknown>>): FastifyBaseLogger {
  return new LazyLogger(parent, bindings) satisfies Pick<
    FastifyBaseLogger,
    Level | 'silent' | 'level'
  > as never
}
