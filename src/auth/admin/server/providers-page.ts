import { isFailure } from '../../../core/index.ts'
import { type Html, html, renderAlert, renderEmptyState } from '../../../web/ui/index.ts'
import { CLOCK_TOLERANCE_SECONDS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import type { AdminRequest, AdminRoute } from '../page/route.ts'
import { renderActionTable, renderAdminPage, renderFacts } from '../page/shell.ts'
import {
  listProviders,
  type ProviderDescription,
  type ProviderTest,
  TEST_PROVIDER,
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

function renderProvidersPage(request: AdminRequest, tested?: ProviderTest): Html {
  const providers = listProviders(request.context)
  const columns = ['Provider', 'Id', 'Kind', 'Issuer']
  return renderAdminPage(
    request,
    {
      section: 'providers',
      title: 'Sign-in providers',
      lead: html`The providers of <code>smart.login.providers</code>. A test fetches metadata and keys, or connects to the directory. It does not sign anyone in.`,
    },
    html`${tested && renderTest(tested)}
${providers.length === 0 ? renderNone() : renderActionTable(request, 'Sign-in providers', columns, providers.map(renderProvider))}`,
  )
}

const KINDS: Readonly<Record<ProviderDescription['kind'], string>> = { oidc: 'OpenID Connect', ldap: 'LDAP' }

function renderProvider({ id, name, kind, issuer }: ProviderDescription) {
  return [
    name,
    html`<code>${id}</code>`,
    KINDS[kind],
    html`<code class="url">${issuer}</code>`,
    html`<form method="post" action="${paths.admin}/providers/${encodeURIComponent(id)}/test"><button class="btn btn--quiet btn--small">Test<span class="sr"> ${name}</span></button></form>`,
  ]
}

function renderNone(): Html {
  return html`<div class="card">${renderEmptyState({ title: 'No sign-in providers', text: 'Users sign in with a password of this server. The setting smart.login.providers adds the identity provider of your organization.' })}</div>`
}

function renderTest(tested: ProviderTest): Html {
  const { id, ok, reason = '' } = tested
  return html`<section class="stack" aria-label="Result of the test">
<div role="status">${ok ? renderAlert(`${id} can be used.`, '', 'ok') : renderAlert(`${id} cannot be used.`, reason, 'bad')}</div>
${tested.jwks_uri !== undefined && renderFacts(listFacts(tested))}
</section>`
}

function listFacts(tested: ProviderTest) {
  const url = (text: string | undefined) => html`<span class="url">${text}</span>`
  return [
    ['Authorization endpoint', url(tested.authorization_endpoint)],
    ['Token endpoint', url(tested.token_endpoint)],
    ['Key set', url(tested.jwks_uri)],
    ['Keys', html`${tested.kids?.map(kid => html`<p><code class="url">${kid}</code></p>`)}`],
    ['Clock', describeClock(tested.clock_ahead_seconds)],
  ] as const
}

/** The provider states its time in whole seconds. */
function describeClock(ahead: number | undefined): string {
  if (ahead === undefined) return 'Not stated by the provider'
  if (Math.abs(ahead) <= 1) return 'The same as here'
  const difference = `${Math.abs(ahead)} s ${ahead > 0 ? 'ahead' : 'behind'}`
  return Math.abs(ahead) > CLOCK_TOLERANCE_SECONDS
    ? `${difference}: too much. Sign-ins fail beyond ${CLOCK_TOLERANCE_SECONDS} s`
    : difference
}
