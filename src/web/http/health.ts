import type { FastifyInstance } from 'fastify'
import { scrub } from '../../core/index.ts'
import { describeUnavailable } from '../../store/index.ts'
import { isDraining } from './listen.ts'
import type { Metrics } from './registry.ts'

export interface CheckResult {
  readonly name: string
  readonly ok: boolean
  /** Why it failed. */
  readonly reason?: string
  /** How the server uses the dependency. */
  readonly note?: string
}

/** The state of a server in this process. */
interface Reporter {
  metrics(): Promise<Metrics>
  readiness(): Promise<readonly CheckResult[]>
}

export type ReportSubject = keyof Reporter

/** The states of a server in all processes that serve its port. */
export interface Gatherer {
  metrics(): Promise<readonly Metrics[]>
  readiness(): Promise<readonly (readonly CheckResult[])[]>
}

const REPORTS = 'reports'

interface Reports {
  own: Partial<Reporter>
  all: Gatherer
}

/** Prepares a server to report its state, of this process alone until `joinWorkers` is called. */
export function prepareReports(app: FastifyInstance): void {
  const all: Gatherer = {
    metrics: async () => [await getReporter(app).metrics()],
    readiness: async () => [await getReporter(app).readiness()],
  }
  app.decorate(REPORTS, { own: {}, all } satisfies Reports)
}

export function addReports(app: FastifyInstance, reports: Partial<Reporter>): void {
  Object.assign(getReports(app).own, reports)
}

export function getReporter(app: FastifyInstance): Reporter {
  const { metrics, readiness } = getReports(app).own
  if (!metrics || !readiness) throw new Error('Cannot report: the server is not complete')
  return { metrics, readiness }
}

export function getGatherer(app: FastifyInstance): Gatherer {
  return getReports(app).all
}

/** Makes `/metrics` and `/readyz` report the state of all processes that serve this port. */
export function joinWorkers(app: FastifyInstance, all: Gatherer): void {
  getReports(app).all = all
}

function getReports(app: FastifyInstance): Reports {
  return app.getDecorator<Reports>(REPORTS)
}

/**
 * A dependency of a server. `check` rejects while it is unavailable; `/readyz` shows the message of a `NotReady`, or the
 * text that it resolves to as a note.
 */
export interface ReadyCheck {
  readonly name: string
  check(): Promise<unknown>
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
    const note = await Promise.race([check(), late.promise])
    return { name, ok: true, ...(typeof note === 'string' && { note }) }
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
  let last: { readonly checkedAt: number; readonly results: Promise<readonly CheckResult[]> } | undefined

  const unavailable = new Set<string>()

  function getResults(): Promise<readonly CheckResult[]> {
    if (!last || clock() - last.checkedAt > FRESH_MS)
      last = { checkedAt: clock(), results: Promise.all(checks.map(runAndLog)) }
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
  for (const result of all.flat()) {
    const before = merged.get(result.name)
    if (before?.ok !== false) merged.set(result.name, { ...result, ...joinNotes(before, result) })
  }
  return [...merged.values()]
}

function joinNotes(...results: readonly (CheckResult | undefined)[]): Pick<CheckResult, 'note'> {
  const notes = new Set(results.flatMap(it => it?.note ?? []))
  return notes.size > 0 ? { note: [...notes].join('; ') } : {}
}
