import { type Html, html, mark, page } from '../web/index.ts'
import type { AppSettings } from './context.ts'
import { getPortalUrl, isSampleData } from './portal-url.ts'

/** The app without a launch, by bookmark or typed: nothing went wrong, nothing is open. */
export function renderWelcomePage(settings: AppSettings): Html {
  return page(
    {
      title: 'No patient is open',
      site: 'Demo app',
      bar: { kind: 'app' },
      width: 'flow',
      sampleData: isSampleData(settings),
    },
    html`<div class="stop">${mark('stop__art')}<div class="stop__body"><h1>No patient is open</h1>
<p>This app shows one patient: the one that you pick when you launch it.</p>
<p>Choose a patient here, or launch the app from the patient list.</p>
<div class="actions"><a class="btn" href="/launch">Choose a patient</a><a class="btn btn--quiet" href="${getPortalUrl(settings)}">Go to patients</a><a class="btn btn--quiet" href="/docs">Session API</a></div>
</div></div>`,
  )
}
