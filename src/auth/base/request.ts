import type { FastifyReply, FastifyRequest } from 'fastify'
import { isRecord, toRecord } from '../../core/index.ts'
import { type AuthRefusal, getStatus, refuse } from './refusal.ts'

/** The parameters of one request, by name (RFC 6749, 3.1). */
export interface Parameters {
  /** Undefined if the parameter is absent, empty or unreadable. */
  get(name: string): string | undefined
  /** Names of parameters that are repeated or contain a NUL, which PostgreSQL does not accept. */
  readonly unreadable: ReadonlySet<string>
}

/** Reads a parsed query or form. A parameter without a value is omitted (RFC 6749, 3.1). */
export function readParameters(source: unknown): Parameters {
  const values = new Map<string, string>()
  const unreadable = new Set<string>()
  for (const [name, value] of Object.entries(toRecord(source))) {
    if (typeof value !== 'string' || value.includes('\0')) unreadable.add(name)
    else if (value !== '') values.set(name, value)
  }
  return { get: name => values.get(name), unreadable }
}

/** A form sends a name once for each box. Joins the values of one name by spaces. */
export function joinRepeated(source: unknown, name: string): unknown {
  if (!isRecord(source)) return source
  const value = source[name]
  return Array.isArray(value) ? { ...source, [name]: value.filter(one => one !== '').join(' ') } : source
}

/** RFC 6749, 5.1: token responses and errors must not be cached. */
export async function forbidCaching(_request: FastifyRequest, reply: FastifyReply): Promise<void> {
  reply.headers({ 'cache-control': 'no-store', pragma: 'no-cache' })
}

export function readForm({ headers, body }: FastifyRequest): Parameters | AuthRefusal {
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(headers['content-type'] ?? ''))
    return refuse('body-not-form')
  const form = readParameters(body)
  return form.unreadable.size === 0 ? form : refuse('some-parameter-unreadable')
}

export function readJson({ headers, body }: FastifyRequest): { readonly body: unknown } | AuthRefusal {
  return /^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '')
    ? { body }
    : refuse('body-not-json')
}

/** RFC 6749, 5.2. */
export function sendOAuthError(
  request: FastifyRequest,
  reply: FastifyReply,
  refusal: AuthRefusal,
): FastifyReply {
  request.log.info({ error: refusal.error, reason: refusal.reason, detail: refusal.detail }, 'Client refused')
  const status = getStatus(refusal.error)
  if (status === 401) reply.header('www-authenticate', 'Basic realm="sallyport", charset="UTF-8"')
  return reply.code(status).send({ error: refusal.error, error_description: refusal.description })
}
