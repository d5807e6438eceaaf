import { badge, type Html, html, type Person, page } from '../../web/index.ts'
import type { AuthSettings } from '../context.ts'
import type { Login } from '../login/login.ts'
import { signedInBar } from './bar.ts'
import { showsSampleData } from './sample-data.ts'

export interface PortalPageOptions {
  readonly settings: AuthSettings
  readonly login: Login
  readonly list: Html
  /** The picked patient, or what stands there while nobody is picked. */
  readonly beside: Html
  readonly isPicked: boolean
  /** Everybody on the page. */
  readonly people: readonly Person[]
}

export function portalPage({ settings, login, list, beside, isPicked, people }: PortalPageOptions): Html {
  const bar = signedInBar(login, 'portal')
  return page(
    { title: 'Patients', bar, sampleData: showsSampleData(settings, people) },
    html`<div class="pagehead"><div><h1>Patients</h1></div>
<p class="base"><span>FHIR base</span> <span class="url">${settings.fhirBaseUrl}</span> ${badge('Answering', 'ok')}</p></div>
<div class="portal${isPicked && ' portal--picked'}">${list}${beside}</div>`,
  )
}
