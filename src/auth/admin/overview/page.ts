import { type Html, html, renderAlert, renderIcon } from '../../../web/ui/index.ts'
import { paths } from '../../base/paths.ts'
import type { Area } from '../subject/area.ts'
import type { AdminRequest, AdminRoute } from '../subject/page/route.ts'
import { renderAdminPage, renderButton } from '../subject/page/shell.ts'
import { type FoundMatter, findOverview, overviewEndpoints } from './overview.ts'

/** `GET /admin`: counts, and what needs attention. */
const overviewRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '',
    async handle(request) {
      const { counts, attention } = await findOverview({ ...request, app: request.request.server })
      const refused = counts.refused_sign_ins
      return renderAdminPage(
        request,
        {
          section: 'overview',
          title: 'Overview',
          lead: `Open problems first, then the number of apps, users and sign-ins.${request.mayChange ? '' : ' You are an auditor: you see this area, and change nothing.'}`,
        },
        html`${attention.length === 0 ? renderAlert('Nothing needs attention.', '', 'ok') : renderAttention(request, attention)}
<h2 class="section__title subhead">At a glance</h2>
<ul class="counts">
${renderTile('/apps', counts.apps, 'app', 'apps')}
${renderTile('/clinicians', counts.clinicians, 'clinician', 'clinicians')}
${renderTile('/clinicians', counts.accounts, 'patient or related person', 'patients and related persons')}
${renderTile('/clinicians', counts.sign_ins, 'sign-in now', 'sign-ins now')}
${refused !== undefined && renderTile('/audit?kind=login&result=refused', refused, 'refused sign-in in 24 hours', 'refused sign-ins in 24 hours')}
</ul>`,
      )
    },
  },
]

export const OVERVIEW_AREA: Area = { routes: overviewRoutes, endpoints: overviewEndpoints }

function renderAttention({ mayChange }: AdminRequest, matters: readonly FoundMatter[]): Html {
  return html`<section class="card card--clip" aria-labelledby="h-attention"><div class="card__head"><h2 id="h-attention">Needs attention</h2></div>
<ul class="matters">${matters.map(
    ({ text, path, action }) =>
      html`<li>${renderIcon('warning')}<span>${text}</span>${renderButton(path, mayChange ? action : 'Open')}</li>`,
  )}</ul></section>`
}

function renderTile(path: string, count: number, one: string, many: string): Html {
  return html`<li><a href="${paths.admin}${path}"><b>${count.toLocaleString('en')}</b> <span>${count === 1 ? one : many}</span></a></li>`
}
