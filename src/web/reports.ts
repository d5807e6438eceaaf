import type { FastifyInstance } from 'fastify'
import type { Metrics } from './registry.ts'

export interface CheckResult {
  readonly name: string
  readonly ok: boolean
  readonly reason?: string
}

/** The state of a server in this process. */
export interface Reporter {
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
