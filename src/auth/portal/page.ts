import { badge, type Html, html, type Person, page } from '../../web/index.ts'
import type { AuthSettings } from '../context.ts'
import type { Login } from '../login/login.ts'
import { makeSignedInBar } from './bar.ts'
import { showsSampleData } from './sample-data.ts'

export interface PortalPageOptions {
  readonly settings: AuthSettings
  readonly login: Login
  readonly list: Html
  /** The selected patient, or a placeholder. */
  readonly beside: Html
  readonly isPicked: boolean
  readonly people: readonly Person[]
}

export function renderPortalPage({
  settings,
  login,
  list,
  beside,
  isPicked,
  people,
}: PortalPageOptions): Html {
  const bar = makeSignedInBar(login, 'portal')
  return page(
    { title: 'Patients', bar, sampleData: showsSampleData(settings, people) },
    html`<div class="pagehead"><div><h1>Patients</h1></div>
<p class="base"><span>FHIR base</span> <span class="url">${settings.fhirBaseUrl}</span> ${badge('Available', 'ok')}</p></div>
<div class="portal${isPicked && ' portal--picked'}">${list}${beside}</div>`,
  )
}
