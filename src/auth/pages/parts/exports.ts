import { findOwn } from '../../../core/index.ts'
import { type Html, html, renderBadge, renderDateTime } from '../../../web/ui/index.ts'
import type { BulkExport } from '../../oauth/exports.ts'

const LEVELS: Readonly<Record<string, string>> = {
  system: 'Everything',
  patient: 'All patients',
  group: 'A group',
}

export function describeExportLevel({ level }: Pick<BulkExport, 'level'>): string {
  return findOwn(LEVELS, level) ?? level
}

export function renderExportTypes({ types }: Pick<BulkExport, 'types'>): Html {
  const names = types.split(' ')
  return html`<details class="more"><summary>${names.length === 1 ? '1 type' : `${names.length} types`}</summary><p class="small">${names.join(', ')}</p></details>`
}

/** The files of an export are prepared only while its app asks for them. */
export function renderExportState({ state, files = 0, askedAt }: BulkExport): Html {
  switch (state) {
    case 'started':
      return html`${renderBadge('Started')}<span class="sub">The app has not asked for its files yet</span>`
    case 'preparing':
      return html`${renderBadge('Being prepared')}`
    case 'idle':
      return html`${renderBadge('Waiting', 'warn')}<span class="sub">The app has not asked for its files since ${askedAt !== undefined && renderDateTime(askedAt)}</span>`
    case 'ready':
      return html`${renderBadge('Ready', 'ok')}<span class="sub">${files === 1 ? '1 file' : `${files.toLocaleString('en')} files`}</span>`
  }
}
