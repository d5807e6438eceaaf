import type { Static } from '@sinclair/typebox'
import { dateTimeHtml, type Html, html, NOT_RECORDED } from '../../web/index.ts'
import type { meRow } from '../api/me.ts'
import type { Result } from '../failure.ts'
import type { Session } from '../sessions/session.ts'
import { card } from './card.ts'

/** Who, for which encounter, until when, with which scopes (design: Who, what, until when). */
export function sessionCard(session: Session, me: Result<Static<typeof meRow.body>>): Html {
  const profile = me.ok ? me.value : undefined
  const unknown = me.ok ? NOT_RECORDED : 'Not shared with this app'
  return card(
    { id: 'h-session', title: 'Session' },
    html`<div class="card__body card__body--tight">
<dl class="kv kv--inline">
<div><dt>Signed in</dt><dd>${profile?.name ?? unknown}</dd></div>
<div><dt>Staff identity</dt><dd>${profile?.fhirUser === undefined ? unknown : html`<code>${profile.fhirUser}</code>`}</dd></div>
<div><dt>Encounter</dt><dd>${session.encounterId === null ? 'None' : html`<code>${session.encounterId}</code>`}</dd></div>
<div><dt>Ends</dt><dd id="session-ends">${dateTimeHtml(session.endsAt)}</dd></div>
<div><dt>FHIR base</dt><dd><code>${session.fhirBaseUrl}</code></dd></div>
</dl>
<details class="more"><summary>Granted scopes</summary><p class="url url--block">${session.scope}</p></details>
<p class="small"><a href="/docs">Session API</a></p>
</div>`,
  )
}
