import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino'
import { scrub } from './scrub.ts'

export type { Logger } from 'pino'

/** Names under which a secret could be handed to the logger by mistake, at the top and one level down. */
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

/** Only what tells the fault: libraries hang whole requests and responses on their errors. */
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

function options(level: string): LoggerOptions {
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

/** JSON lines for machines; the destination is standard output unless told. */
export function createLogger(
  settings: { readonly level?: string; readonly destination?: DestinationStream } = {},
): Logger {
  const made = options(settings.level ?? 'info')
  return settings.destination ? pino(made, settings.destination) : pino(made)
}
