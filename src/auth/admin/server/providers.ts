import { Type } from 'typebox'
import { getProviderIssuer, PROVIDER_KINDS } from '../../../config/index.ts'
import { describeError, isFailure } from '../../../core/index.ts'
import { CLOSED, NONE, OneOf } from '../../../endpoint/index.ts'
import { type Html, html } from '../../../web/ui/index.ts'
import { CLOCK_TOLERANCE_SECONDS } from '../../base/limits.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { ProviderReport } from '../../users/providers/oidc/client.ts'
import { checkProvider } from '../../users/providers/providers.ts'
import {
  type Admin,
  type AdminFailure,
  type AdminOperation,
  failAdmin,
  recordAction,
} from '../base/action.ts'
import { defineEndpoint } from '../base/endpoint.ts'
import { describeColumns, type SubjectColumns, toJson } from '../subject/columns.ts'

export const TEST_PROVIDER: AdminOperation = { name: 'provider test', signIn: 'never asks' }

export interface ProviderDescription {
  readonly id: string
  readonly name: string
  readonly kind: (typeof PROVIDER_KINDS)[number]
  readonly issuer: string
}

const KINDS: Readonly<Record<ProviderDescription['kind'], string>> = { oidc: 'OpenID Connect', ldap: 'LDAP' }

export const PROVIDER_COLUMNS: SubjectColumns<ProviderDescription> = {
  name: { of: 'name', schema: Type.String(), page: 'Provider' },
  id: { of: 'id', schema: Type.String(), page: ['Id', ({ id }) => html`<code>${id}</code>`] },
  kind: { of: 'kind', schema: OneOf(PROVIDER_KINDS), page: ['Kind', ({ kind }) => KINDS[kind]] },
  issuer: {
    of: 'issuer',
    schema: Type.String(),
    page: ['Issuer', ({ issuer }) => html`<code class="url">${issuer}</code>`],
  },
}

export interface TestedProvider {
  readonly id: string
  /** Undefined if the provider can be used. */
  readonly fault?: string
  /** Of an OpenID provider. */
  readonly report?: ProviderReport | undefined
}

export const TEST_COLUMNS: SubjectColumns<TestedProvider> = {
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

export function listProviders({ providers }: Pick<AuthContext, 'providers'>): readonly ProviderDescription[] {
  return providers.all.map(provider => ({
    id: provider.id,
    name: provider.name,
    kind: provider.kind,
    issuer: getProviderIssuer(provider),
  }))
}

/** Fetches the metadata and the keys of a provider, or searches the directory, without a cache. Nobody is signed in. */
export async function testProvider(
  admin: Admin,
  { providers }: Pick<AuthContext, 'providers'>,
  id: string,
): Promise<TestedProvider | AdminFailure> {
  const provider = providers.find(id)
  if (!provider) return failAdmin('provider-unknown', { id })
  const refused = await recordAction(admin, { operation: TEST_PROVIDER, target: id })
  if (refused) return refused
  try {
    return { id, report: await checkProvider(provider) }
  } catch (error) {
    return { id, fault: describeError(error) }
  }
}

export const providerEndpoints = [
  defineEndpoint({
    method: 'GET',
    path: '/providers',
    title: 'Sign-in providers',
    result: Type.Object({ items: Type.Array(describeColumns(PROVIDER_COLUMNS)) }, CLOSED),
    handle: async ({ context }) => ({
      items: listProviders(context).map(provider => toJson(PROVIDER_COLUMNS, provider)),
    }),
  }),
  defineEndpoint({
    method: 'POST',
    path: '/providers/:id/test',
    title: 'Test a sign-in provider',
    description: 'Fetches metadata and keys, or searches the directory. Does not sign anyone in.',
    body: NONE,
    result: describeColumns(TEST_COLUMNS),
    operation: TEST_PROVIDER,
    async handle({ admin, context, params: { id = '' } }) {
      const tested = await testProvider(admin, context, id)
      return isFailure(tested) ? tested : toJson(TEST_COLUMNS, tested)
    },
  }),
]
