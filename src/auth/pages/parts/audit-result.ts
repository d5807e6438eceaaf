import type { KeptRecord } from '../../../audit/index.ts'
import { type Html, renderBadge, renderEmptyState } from '../../../web/ui/index.ts'
import { isFailed } from './explain/describe.ts'

export function renderResult(record: KeptRecord): Html {
  if (isFailed(record)) return renderBadge('Failed', 'warn')
  return record.allowed ? renderBadge('Allowed', 'ok') : renderBadge('Refused', 'bad')
}

/** Without audit records, pages that show them are empty. */
export function renderAuditOff(): Html {
  return renderEmptyState({
    title: 'The audit trail is off',
    text: 'Nothing is recorded: the setting smart.server.audit turns it off.',
  })
}
