import type { FastifyInstance } from 'fastify'
import { describeUnavailable } from '../store/index.ts'
import { isDraining } from './draining.ts'
import { scrub } from './scrub.ts'

/** Something a server needs. `check` rejects while it is away; anybody is told why if it says so by `NotReady`. */
export interface ReadyCheck {
  readonly name: string
  check(): Promise<void>
}

/** Why something is away, in words for anybody. What drivers say names hosts, users and files, and is for the log. */
export class NotReady extends Error {}

interface CheckResult {
  readonly name: string
  readonly ok: boolean
  readonly reason?: string
  /** What is not told to anybody. */
  readonly error?: unknown
}

const CHECK_LIMIT_MS = 1_000
/** Together with the time limit of a check, the state is never older than 2 s (START-4). */
const FRESH_MS = 500

const HIDDEN = 'it cannot be used; the log says why'

async function run({ name, check }: ReadyCheck): Promise<CheckResult> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => late.reject(new NotReady(`no answer in ${CHECK_LIMIT_MS} ms`)),
    CHECK_LIMIT_MS,
  )
  try {
    await Promise.race([check(), late.promise])
    return { name, ok: true }
  } catch (error) {
    if (error instanceof NotReady) return { name, ok: false, reason: scrub(error.message) }
    return { name, ok: false, reason: describeUnavailable(error) ?? HIDDEN, error }
  } finally {
    clearTimeout(timer)
  }
}

/** `GET /healthz`: it serves. `GET /readyz`: what it needs of its own is there, or 503 with the reason. */
export function serveHealth(
  app: FastifyInstance,
  checks: readonly ReadyCheck[],
  clock: () => number = Date.now,
): void {
  let last: { readonly at: number; readonly results: Promise<readonly CheckResult[]> } | undefined

  const hidden = new Set<string>()

  function results(): Promise<readonly CheckResult[]> {
    if (!last || clock() - last.at > FRESH_MS) last = { at: clock(), results: Promise.all(checks.map(look)) }
    return last.results
  }

  async function look(check: ReadyCheck): Promise<CheckResult> {
    const { error, ...result } = await run(check)
    const { name, ok } = result
    if (ok && hidden.delete(name)) app.log.warn({ check: name }, `Can use ${name} again`)
    if (error !== undefined && !hidden.has(name)) {
      hidden.add(name)
      app.log.warn({ check: name, err: error }, `Cannot use ${name}`)
    }
    return result
  }

  app.get('/healthz', async () => ({ status: 'ok' }))
  app.get('/readyz', async (_request, reply) => {
    if (isDraining(app)) return reply.code(503).send({ status: 'draining', checks: [] })
    const found = await results()
    const ready = found.every(result => result.ok)
    return reply.code(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not ready', checks: found })
  })
}
