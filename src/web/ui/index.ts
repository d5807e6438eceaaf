/**
 * The layout and the components of pages, their dates, brand and browser files (`assets/`; link them with `getAssetUrl` or
 * `renderPage({ scripts })`), and CSV. It knows no server, no database and no tokens.
 */

export { getAssetUrl, serveAssets } from './assets.ts'
export { type Brand, createBrand, type Palette, type Shades, serveBrand } from './brand.ts'
export {
  type Action,
  type Choice,
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
  renderOptions,
  renderPageHead,
  renderSearchForm,
  renderSelect,
  renderTable,
  type Tone,
} from './components.ts'
export { CSV_TYPE, formatCellText, formatCsvRow, parseCsv } from './csv.ts'
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
} from './date.ts'
export { Html, html, raw } from './html.ts'
export {
  type ErrorPageOptions,
  type PageOptions,
  renderDocument,
  renderErrorPage,
  renderPage,
} from './page.ts'
export type { Bar, BarLink } from './top-bar.ts'
export { computeWarningMs, formatTimeLeft, renderCountdown } from './top-bar.ts'
export { version } from './version.ts'
