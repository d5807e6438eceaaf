import { type Html, html, type Person, page, patientBanner } from '../../web/index.ts'
import type { Client } from '../client/client.ts'
import type { Login } from '../login/login.ts'
import { paths } from '../paths.ts'
import { meaningOf } from './meaning.ts'

export interface ConsentPageOptions {
  readonly client: Client
  readonly login: Login
  readonly interactionId: string
  /** What would be granted. */
  readonly scope: string
  readonly redirectUri: string
  readonly sampleData: boolean
  /** The patient that the app was launched for. */
  readonly patient: Person | undefined
  readonly now: number
}

/** Who asks, for what; refusing is as easy as allowing (design: Who, what, until when). */
export function consentPage(options: ConsentPageOptions): Html {
  const { client, sampleData } = options
  const bar = { kind: 'flow', steps: ['Sign in', 'Allow'], current: 1 } as const
  return page({ title: `Allow ${client.name}`, bar, width: 'flow', sampleData }, question(options))
}

function question(options: ConsentPageOptions): Html {
  const { client, login, interactionId, scope, redirectUri, patient, now } = options
  const scopes = scope.split(' ')
  return html`<div class="pagehead"><div>
<h1>Allow ${client.name}?</h1>
<p class="pagehead__lead">The app at <b>${hostOf(redirectUri)}</b> asks, for <b>${login.clinician.displayName}</b>, for what is listed below.</p>
</div></div>
${patient && html`<section class="card card--clip card--band consent__patient" aria-label="Patient">${patientBanner(patient, { now, heading: 'p' })}</section>`}
<form method="post" action="${paths.consent}" class="stack">
<input type="hidden" name="interaction" value="${interactionId}">
<input type="hidden" name="clinician" value="${login.clinician.id}">
<ul class="card card__body">${scopes.flatMap(text => meaningOf(text) ?? []).map(meaning => html`<li>${meaning}</li>`)}</ul>
<div class="actions"><button class="btn" name="decision" value="allow">Allow</button><button class="btn btn--quiet" name="decision" value="deny">Do not allow</button></div>
<details class="more"><summary>The exact scopes</summary><ul>${scopes.map(text => html`<li><code>${text}</code></li>`)}</ul></details>
</form>`
}

function hostOf(redirectUri: string): string {
  const { host, protocol } = new URL(redirectUri)
  return host === '' ? protocol.slice(0, -1) : host
}
