import { setTimeout as pause } from 'node:timers/promises'
import { Type } from 'typebox'
import { getProviderIssuer, PROVIDER_KINDS } from '../../../config/index.ts'
import { describeError } from '../../../core/index.ts'
import { OneOf } from '../../../endpoint/index.ts'
import { type Html, html, renderAlert } from '../../../web/ui/index.ts'
import { CLOCK_TOLERANCE_SECONDS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import type { ProviderReport } from '../../users/providers/oidc/client.ts'
import { checkProvider } from '../../users/providers/providers.ts'
import {
  type Admin,
  type AdminFailure,
  type AdminOperation,
  failAdmin,
  recordAction,
} from '../base/action.ts'
import { defineArea } from '../subject/area.ts'
import type { Attention } from '../subject/attention.ts'
import { describeColumns, listDetails, type SubjectColumns, toJson } from '../subject/columns.ts'
import type { Filters } from '../subject/filters.ts'
import { defineList } from '../subject/list.ts'
import { renderList } from '../subject/list-page.ts'
import type { AdminRequest } from '../subject/page/route.ts'
import { renderFacts } from '../subject/page/shell.ts'
import type { Subject } from '../subject/subject.ts'

const TEST_PROVIDER: AdminOperation = { name: 'provider test', signIn: 'never asks' }

interface ProviderDescription {
  readonly id: string
  readonly name: string
  readonly kind: (typeof PROVIDER_KINDS)[number]
  readonly issuer: string
}

const KINDS: Readonly<Record<ProviderDescription['kind'], string>> = { oidc: 'OpenID Connect', ldap: 'LDAP' }

/** The sign-in providers of the settings. */
const PROVIDERS = defineList<ProviderDescription, Filters>({
  columns: {
    name: { of: 'name', schema: Type.String(), page: 'Provider' },
    id: { of: 'id', schema: Type.String(), page: ['Id', ({ id }) => html`<code>${id}</code>`] },
    kind: { of: 'kind', schema: OneOf(PROVIDER_KINDS), page: ['Kind', ({ kind }) => KINDS[kind]] },
    issuer: {
      of: 'issuer',
      schema: Type.String(),
      page: ['Issuer', ({ issuer }) => html`<code class="url">${issuer}</code>`],
    },
  },
  filters: {},
  read: async admin => ({ items: listProviders(admin), next: undefined }),
  api: { path: '/providers', title: 'Sign-in providers', isWhole: true },
  page: {
    section: 'providers',
    title: 'Sign-in providers',
    lead: html`The providers of <code>smart.login.providers</code>. A test fetches metadata and keys, or connects to the directory. It does not sign anyone in.`,
    caption: 'Sign-in providers',
    notFound: {
      title: 'No sign-in providers',
      text: 'Users sign in with a password of this server. The setting smart.login.providers adds the identity provider of your organization.',
    },
    renderAction: ({ id, name }) =>
      html`<form method="post" action="${paths.admin}/providers/${encodeURIComponent(id)}/test"><button class="btn btn--quiet btn--small">Test<span class="sr"> ${name}</span></button></form>`,
  },
})

interface TestedProvider {
  readonly id: string
  /** Undefined if the provider can be used. */
  readonly fault?: string
  /** Of an OpenID provider. */
  readonly report?: ProviderReport | undefined
}

const TEST_COLUMNS: SubjectColumns<TestedProvider> = {
  id: { of: 'id', schema: Type.String() },
  ok: { of: ({ fault }) => fault === undefined, schema: Type.Boolean() },
  reason: { of: 'fault', schema: Type.Optional(Type.String()) },
  authorization_endpoint: {
    of: ({ report }) => report?.authorizationEndpoint,
    schema: Type.Optional(Type.String()),
    detail: ['Authorization endpoint', ({ report }) => renderUrl(report?.authorizationEndpoint)],
  },
  token_endpoint: {
    of: ({ report }) => report?.tokenEndpoint,
    schema: Type.Optional(Type.String()),
    detail: ['Token endpoint', ({ report }) => renderUrl(report?.tokenEndpoint)],
  },
  jwks_uri: {
    of: ({ report }) => report?.keySetUrl,
    schema: Type.Optional(Type.String()),
    detail: ['Key set', ({ report }) => renderUrl(report?.keySetUrl)],
  },
  kids: {
    of: ({ report }) => report && [...report.keyIds],
    schema: Type.Optional(Type.Array(Type.String())),
    detail: [
      'Keys',
      ({ report }) =>
        report && html`${[...report.keyIds].map(kid => html`<p><code class="url">${kid}</code></p>`)}`,
    ],
  },
  clock_ahead_seconds: {
    of: ({ report }) => report?.clockAheadSeconds,
    schema: Type.Optional(Type.Integer()),
    detail: ['Clock', ({ report }) => report && describeClock(report.clockAheadSeconds)],
  },
}

function renderUrl(url: string | undefined): Html | undefined {
  return url === undefined ? undefined : html`<span class="url">${url}</span>`
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

function listProviders({ rules }: Pick<Admin, 'rules'>): readonly ProviderDescription[] {
  return rules.providers.map(provider => ({
    id: provider.id,
    name: provider.name,
    kind: provider.kind,
    issuer: getProviderIssuer(provider),
  }))
}

/** Fetches the metadata and the keys of a provider, or searches the directory, without a cache. Nobody is signed in. */
export async function testProvider(admin: Admin, id: string): Promise<TestedProvider | AdminFailure> {
  const provider = admin.rules.providers.find(one => one.id === id)
  if (!provider) return failAdmin('provider-unknown', { id })
  const refused = await recordAction(admin, { operation: TEST_PROVIDER, target: id })
  if (refused) return refused
  try {
    return { id, report: await checkProvider(provider) }
  } catch (error) {
    return { id, fault: describeError(error) }
  }
}

const PROVIDER: Subject<ProviderDescription, string, TestedProvider> = {
  name: 'provider',
  lists: [PROVIDERS],
  operations: {
    test: {
      signIn: TEST_PROVIDER.signIn,
      api: {
        title: 'Test a sign-in provider',
        description: 'Fetches metadata and keys, or searches the directory. Does not sign anyone in.',
      },
      isAtOnce: true,
      perform: testProvider,
    },
  },
  toTarget: id => id,
  find: async ({ admin }, id) =>
    listProviders(admin).find(provider => provider.id === id) ?? failAdmin('provider-unknown', { id }),
  api: {
    path: '/providers/:id',
    result: describeColumns(TEST_COLUMNS),
    describe: tested => toJson(TEST_COLUMNS, tested),
  },
  pages: {
    section: 'providers',
    path: '/providers/:id',
    show: (request, tested) => renderList(request, PROVIDERS, renderTest(request, tested)),
  },
}

function renderTest(request: AdminRequest, tested: TestedProvider): Html {
  const { id, fault, report } = tested
  return html`<section class="stack" aria-label="Result of the test">
<div role="status">${fault === undefined ? renderAlert(`${id} can be used.`, '', 'ok') : renderAlert(`${id} cannot be used.`, fault, 'bad')}</div>
${report && renderFacts(listDetails(TEST_COLUMNS, tested, request))}
</section>`
}

export const PROVIDER_AREA = defineArea(PROVIDER)

/** A page does not wait longer for a provider, which is slow for users too. */
const WAIT_MS = 2_000

export const PROVIDER_ATTENTION: Attention = {
  code: 'provider',
  path: '/providers',
  action: 'Test provider',
  async find({ admin }) {
    const tested = admin.rules.providers.map(async provider => {
      const { id, name } = provider
      const works = checkProvider(provider).then(
        () => true,
        () => false,
      )
      const text = `The sign-in provider ${name} does not respond as expected.`
      return (await Promise.race([works, pause(WAIT_MS, false, { ref: false })])) ? [] : { name: id, text }
    })
    return (await Promise.all(tested)).flat()
  },
}
