/**
 * The common ground of the three servers: a fastify with request ids, logs without secrets, `/healthz`, `/readyz`,
 * `/metrics`, `/assets/*`, security headers, the cross-site form check and errors in the style of the address; and
 * the words and layouts of pages. It knows no database, no token and no route of a part.
 *
 * Browser files of all pages live in `assets/`; link them with `assetUrl` or `page({ scripts })`.
 */
export { listRoutes } from './allowed-methods.ts'
export type { ErrorStyle } from './answers.ts'
export { getAssetUrl } from './assets.ts'
export type { Bar, BarLink } from './bar.ts'
export { type Action, alert, badge, empty, field, type Tone } from './components.ts'
export { type CookiePlan, cookiePlan } from './cookies.ts'
export { answerPreflight, type Origins, setCors } from './cors.ts'
export { countdown, endsSoon, leftText } from './countdown.ts'
export { startDraining } from './draining.ts'
export { type ErrorPageOptions, renderErrorPage } from './error-page.ts'
export { createPagePolicy, isPlainHost, type PagePolicy } from './headers.ts'
export { NotReady, type ReadyCheck } from './health.ts'
export { Html, html, raw } from './html.ts'
export { gateArt, type IconName, icon, logo, mark, stopArt } from './icons.ts'
export { listen } from './listen.ts'
export { createLogger, type Logger, serializeError } from './logger.ts'
export { findNetwork } from './network.ts'
export { document, type PageOptions, page } from './page.ts'
export {
  type BannerOptions,
  computeAge,
  describeEncounter,
  type EncounterWords,
  findAlike,
  formatAge,
  formatDate,
  formatDeath,
  formatDose,
  formatEncounterTime,
  formatMedicine,
  formatName,
  formatSex,
  formatTime,
  isAlike,
  listFacts,
  NOT_KNOWN,
  NOT_RECORDED,
  type Person,
  type PersonName,
  readPerson,
  recordNumber,
  renderAlikeWarning,
  renderDate,
  renderDateTime,
  renderName,
  renderPatientBanner,
  renderValue,
  type When,
} from './person/index.ts'
export { type Problem, toProblem } from './problems.ts'
export { pathOf } from './reply.ts'
export { createRequestId, readRequestId } from './request-id.ts'
export { scrub } from './scrub.ts'
export { createServer, type ServerOptions } from './server.ts'
export { version } from './version.ts'
