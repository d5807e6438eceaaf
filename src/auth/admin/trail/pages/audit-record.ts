import type { KeptRecord } from '../../../../audit/index.ts'
import { isFailure } from '../../../../core/index.ts'
import { type Html, html } from '../../../../web/ui/index.ts'
import { findGrant, type GrantDescription } from '../../access/grants.ts'
import { listDetails } from '../../subject/columns.ts'
import type { AdminRequest } from '../../subject/page/route.ts'
import { renderAdminPage, renderFacts, renderLink } from '../../subject/page/shell.ts'
import { RECORD_CELLS, type ShownRecord } from '../columns.ts'
import { renderDetails } from '../details.ts'

/** The grant of the record's launch, if it can still be used. */
export async function findUsableGrant(
  { admin }: AdminRequest,
  { launch_id }: KeptRecord,
): Promise<GrantDescription | undefined> {
  const grant = launch_id === null ? undefined : await findGrant(admin, launch_id)
  return isFailure(grant) ? undefined : grant
}

export function renderRecordPage(request: AdminRequest, shown: ShownRecord, event: object): Html {
  const { id, details } = shown.record
  return renderAdminPage(
    request,
    {
      section: 'audit',
      title: `Record ${id}`,
      actions: renderLink('/audit', 'All records', 'btn btn--quiet btn--small'),
    },
    html`${renderFacts(listDetails(RECORD_CELLS, shown, request))}
${details !== null && renderDetails(JSON.parse(details))}
<details class="more after"><summary>As a FHIR AuditEvent</summary><pre class="card card__body">${JSON.stringify(event, null, 2)}</pre></details>`,
  )
}
