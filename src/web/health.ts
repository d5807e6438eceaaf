import type { FastifyInstance } from 'fastify'
import { describeUnavailable } from '../store/index.ts'
import { scrub } from './logger.ts'
import { addReports, type CheckResult, getGatherer } from './reports.ts'
import { isDraining } from './shutdown.ts'

/** A dependency of a server. `check` rejects while it is unavailable; `/readyz` shows the message of a `NotReady`. */
export interface ReadyCheck {
  readonly name: string
  check(): Promise<void>
}

/** A reason that `/readyz` may show. Messages of drivers contain hosts, users and files, and are only logged. */
export class NotReady extends Error {}

interface CheckRun extends CheckResult {
  /** Logged, never shown. */
  readonly error?: unknown
}

const CHECK_LIMIT_MS = 1_000
/** With the time limit of a check, the reported state is never older than 2 s (START-4). */
const FRESH_MS = 500

const UNAVAILABLE = 'unavailable; see the log'

async function runCheck({ name, check }: ReadyCheck): Promise<CheckRun> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => late.reject(new NotReady(`no response within ${CHECK_LIMIT_MS} ms`)),
    CHECK_LIMIT_MS,
  )
  try {
    await Promise.race([check(), late.promise])
    return { name, ok: true }
  } catch (error) {
    if (error instanceof NotReady) return { name, ok: false, reason: scrub(error.message) }
    return { name, ok: false, reason: describeUnavailable(error) ?? UNAVAILABLE, error }
  } finally {
    clearTimeout(timer)
  }
}

/** Adds `GET /healthz` (the server is up) and `GET /readyz` (its dependencies are available, else 503 with the reason). */
export function serveHealth(
  app: FastifyInstance,
  checks: readonly ReadyCheck[],
  clock: () => number = Date.now,
): void {
  let last: { readonly at: number; readonly results: Promise<readonly CheckResult[]> } | undefined

  const unavailable = new Set<string>()

  function getResults(): Promise<readonly CheckResult[]> {
    if (!last || clock() - last.at > FRESH_MS)
      last = { at: clock(), results: Promise.all(checks.map(runAndLog)) }
    return last.results
  }

  async function runAndLog(check: ReadyCheck): Promise<CheckResult> {
    const { error, ...result } = await runCheck(check)
    const { name, ok } = result
    if (ok && unavailable.delete(name)) app.log.warn({ check: name }, `Recovered: ${name}`)
    if (error !== undefined && !unavailable.has(name)) {
      unavailable.add(name)
      app.log.warn({ check: name, err: error }, `Unavailable: ${name}`)
    }
    return result
  }

  addReports(app, { readiness: getResults })
  app.get('/healthz', async () => ({ status: 'ok' }))
  app.get('/readyz', async (_request, reply) => {
    if (isDraining(app)) return reply.code(503).send({ status: 'draining', checks: [] })
    const found = mergeChecks(await getGatherer(app).readiness())
    const ready = found.every(result => result.ok)
    return reply.code(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not ready', checks: found })
  })
}

/** A check passes if it passes in every process. */
function mergeChecks(all: readonly (readonly CheckResult[])[]): readonly CheckResult[] {
  const merged = new Map<string, CheckResult>()
  for (const result of all.flat()) if (merged.get(result.name)?.ok !== false) merged.set(result.name, result)
  return [...merged.values()]
}
