import { badge, dateTimeHtml, encounterTime, type Html, html, NOT_RECORDED } from '../../web/index.ts'
import type { Session } from '../sessions/session.ts'
import { describeFailure, renderCard } from './card.ts'
import type { DemoRecord } from './load-record.ts'

/** Who, for which encounter, until when, with which scopes (design: Who, what, until when). */
export function renderSessionCard(
  session: Session,
  { me, encounter }: Pick<DemoRecord, 'me' | 'encounter'>,
): Html {
  const profile = me.ok ? me.value : undefined
  const unknown = me.ok ? NOT_RECORDED : 'Not shared with this app'
  return renderCard(
    { id: 'h-session', title: 'Session' },
    html`<div class="card__body card__body--tight">
<dl class="kv kv--inline">
<div><dt>Signed in</dt><dd>${profile?.name ?? unknown}</dd></div>
<div><dt>Staff identity</dt><dd>${profile?.fhirUser === undefined ? unknown : html`<code>${profile.fhirUser}</code>`}</dd></div>
<div><dt>Encounter</dt><dd>${encounterHtml(encounter)}</dd></div>
<div><dt>Ends</dt><dd id="session-ends">${dateTimeHtml(session.endsAt)}</dd></div>
<div><dt>FHIR base</dt><dd><code>${session.fhirBaseUrl}</code></dd></div>
</dl>
<details class="more"><summary>Granted scopes</summary><p class="url url--block">${session.scope}</p></details>
${session.encounterId !== null && html`<details class="more"><summary>Encounter id</summary><p class="url url--block">${session.encounterId}</p></details>`}
<p class="small"><a href="/docs">Session API</a></p>
</div>`,
  )
}

/** What it is, when and how it stands; an id tells a clinician nothing. */
function encounterHtml(encounter: DemoRecord['encounter']): Html {
  if (!encounter) return html`None`
  if (!encounter.ok)
    return html`Chosen at the launch<span class="sub">${describeFailure(encounter.failure)}</span>`
  const { title, kind, status, inProgress } = encounter.value
  return html`${title}&ensp;${badge(status, inProgress ? 'accent' : undefined)}<span class="sub">${kind !== undefined && kind !== title && `${kind}, `}${encounterTime(encounter.value)}</span>`
}
