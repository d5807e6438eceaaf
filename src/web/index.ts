/**
 * The common parts of the three servers: a fastify instance with request ids, a log without secrets, `/healthz`, `/readyz`,
 * `/metrics`, traces, `/assets/*`, security headers, the check of cross-site forms and error responses; the layout and the components of
 * pages; and the formatting of persons, dates, medicines and encounters (`person/`). It has no database access, no tokens and
 * none of the servers' own routes.
 *
 * Browser files of all pages are in `assets/`; link them with `getAssetUrl` or `renderPage({ scripts })`.
 */

export { getAssetUrl } from './assets.ts'
export { type Brand, createBrand, type Palette, type Shades } from './brand.ts'
export {
  type Action,
  type Field,
  type IconName,
  renderActions,
  renderAlert,
  renderBadge,
  renderChoice,
  renderContact,
  renderCopyable,
  renderDanger,
  renderEmptyState,
  renderErrorArt,
  renderFacts,
  renderField,
  renderHidden,
  renderIcon,
  renderLoginArt,
  renderLogo,
  renderMark,
  renderPageHead,
  renderSearchForm,
  renderTable,
  type Tone,
} from './components.ts'
export { CSV_TYPE, formatCellText, formatCsvRow, parseCsv } from './csv.ts'
export { createDocument } from './document.ts'
export {
  answerPreflight,
  type CookieDefinition,
  createPagePolicy,
  defineCookie,
  isPlainHost,
  type Origins,
  type PagePolicy,
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
export { Html, html, raw } from './html.ts'
export { checkPort, listen, replaceCertificate, STOP_MS, startDraining } from './listen.ts'
export {
  createChildLogger,
  createLogger,
  type Logger,
  logOutages,
  serializeError,
  setLogLevel,
} from './logger.ts'
export {
  createMetricsServer,
  readProcessMetrics,
  type ServerReports,
} from './metrics.ts'
export {
  createOpenApi,
  describeErrors,
  describeJson,
  describeQuery,
  toPlainJson,
} from './openapi.ts'
export { type SpanExportOptions, startSpanExport } from './otlp.ts'
export {
  type ErrorPageOptions,
  type PageOptions,
  renderDocument,
  renderErrorPage,
  renderPage,
} from './page.ts'
export {
  describeEncounter,
  type EncounterDescription,
  formatDose,
  formatEncounterTime,
  formatMedicine,
} from './person/clinical.ts'
export {
  findDayStart,
  formatAge,
  formatDate,
  formatLength,
  formatTime,
  MONTHS,
  NOT_KNOWN,
  NOT_RECORDED,
  parseDay,
  readZone,
  renderDate,
  renderDateTime,
  renderMoment,
  renderRecordDate,
  renderSince,
  renderZoneName,
  type When,
} from './person/date.ts'
export {
  type BannerOptions,
  chooseRecordNumber,
  computeAge,
  formatDeath,
  formatName,
  formatSex,
  INACTIVE,
  listAlike,
  listFacts,
  renderAlikeWarning,
  renderName,
  renderPatientBanner,
  renderValue,
} from './person/describe.ts'
export {
  areUnlike,
  findAlike,
  findConfusable,
  isNearName,
  type Person,
  type PersonName,
  readPerson,
} from './person/person.ts'
export { type Problem, toProblem } from './problems.ts'
export {
  type Counter,
  endMetrics,
  type Histogram,
  type Metrics,
  mergeMetrics,
  processMetrics,
  Registry,
} from './registry.ts'
export type { ErrorStyle } from './reply.ts'
export { stripQuery } from './reply.ts'
export {
  createRequestId,
  findNetwork,
  findSite,
  isOpenedByOtherSite,
  isSentByOwnPage,
  parseIdleSeconds,
  readRequestId,
} from './request.ts'
export { listRoutes } from './routes.ts'
export { createServer, type ServerOptions } from './server.ts'
export type { Bar, BarLink } from './top-bar.ts'
export { computeWarningMs, formatTimeLeft, renderCountdown } from './top-bar.ts'
export { startClientSpan } from './trace.ts'
export { version } from './version.ts'
