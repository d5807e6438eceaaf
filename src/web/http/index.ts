/**
 * The common parts of the three servers: a fastify instance with request ids, a log without secrets, `/healthz`, `/readyz`,
 * `/metrics`, traces, `/assets/*`, security headers, the check of cross-site forms and error responses. It has no tokens and
 * none of the servers' own routes.
 */

export { createDocument, serveDocuments } from './document.ts'
export {
  answerPreflight,
  type CookieDefinition,
  createPagePolicy,
  defineCookie,
  isPlainHost,
  type Origins,
  setCors,
} from './headers.ts'
export {
  type CheckResult,
  type Gatherer,
  getGatherer,
  getReporter,
  joinWorkers,
  NotReady,
  type ReadyCheck,
  type ReportSubject,
} from './health.ts'
export { checkPort, listen, replaceCertificate, STOP_MS, startDraining } from './listen.ts'
export {
  createChildLogger,
  createLogger,
  type Logger,
  logOutages,
  serializeError,
  setLogLevel,
} from './logger.ts'
export { createMetricsServer, readProcessMetrics, type ServerReports } from './metrics.ts'
export { type SpanExportOptions, startSpanExport } from './otlp.ts'
export { toProblem } from './problems.ts'
export {
  type Counter,
  endMetrics,
  type Metrics,
  mergeMetrics,
  processMetrics,
  Registry,
} from './registry.ts'
export { stripQuery } from './reply.ts'
export {
  findNetwork,
  findSite,
  isOpenedByOtherSite,
  isSentByOwnPage,
  parseIdleSeconds,
} from './request.ts'
export { listRoutes } from './routes.ts'
export { createServer, type ServerOptions } from './server.ts'
export { startClientSpan } from './trace.ts'
