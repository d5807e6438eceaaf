import { isFailure } from '../../../core/index.ts'
import { type Html, html, renderAlert, renderEmptyState } from '../../../web/ui/index.ts'
import { paths } from '../../base/paths.ts'
import { listDetails, readCells } from '../subject/columns.ts'
import type { AdminRequest, AdminRoute } from '../subject/page/route.ts'
import { renderActionTable, renderAdminPage, renderFacts } from '../subject/page/shell.ts'
import {
  listProviders,
  PROVIDER_COLUMNS,
  type ProviderDescription,
  TEST_COLUMNS,
  TEST_PROVIDER,
  type TestedProvider,
  testProvider,
} from './providers.ts'

/** `/admin/providers`: lists the sign-in providers of the settings, and tests them. */
export const providerRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/providers',
    handle: async request => renderProvidersPage(request),
  },
  {
    method: 'POST',
    path: '/providers/:id/test',
    operation: TEST_PROVIDER,
    async handle(request) {
      const tested = await testProvider(request.admin, request.context, request.params.id ?? '')
      return isFailure(tested) ? tested : renderProvidersPage(request, tested)
    },
  },
]

function renderProvidersPage(request: AdminRequest, tested?: TestedProvider): Html {
  const providers = listProviders(request.context)
  return renderAdminPage(
    request,
    {
      section: 'providers',
      title: 'Sign-in providers',
      lead: html`The providers of <code>smart.login.providers</code>. A test fetches metadata and keys, or connects to the directory. It does not sign anyone in.`,
    },
    html`${tested && renderTest(request, tested)}
${providers.length === 0 ? renderNone() : renderActionTable(request, 'Sign-in providers', heads, providers.map(renderProvider))}`,
  )
}

const { heads, renderRow } = readCells(PROVIDER_COLUMNS)

function renderProvider(provider: ProviderDescription) {
  const { id, name } = provider
  return [
    ...renderRow(provider),
    html`<form method="post" action="${paths.admin}/providers/${encodeURIComponent(id)}/test"><button class="btn btn--quiet btn--small">Test<span class="sr"> ${name}</span></button></form>`,
  ]
}

function renderNone(): Html {
  return html`<div class="card">${renderEmptyState({ title: 'No sign-in providers', text: 'Users sign in with a password of this server. The setting smart.login.providers adds the identity provider of your organization.' })}</div>`
}

function renderTest(request: AdminRequest, tested: TestedProvider): Html {
  const { id, fault, report } = tested
  return html`<section class="stack" aria-label="Result of the test">
<div role="status">${fault === undefined ? renderAlert(`${id} can be used.`, '', 'ok') : renderAlert(`${id} cannot be used.`, fault, 'bad')}</div>
${report && renderFacts(listDetails(TEST_COLUMNS, tested, request))}
</section>`
}
