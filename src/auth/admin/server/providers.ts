import { type Static, Type } from 'typebox'
import { getProviderIssuer, PROVIDER_KINDS } from '../../../config/index.ts'
import { describeError } from '../../../core/index.ts'
import { CLOSED, NONE, OneOf } from '../../../endpoint/index.ts'
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

export const TEST_PROVIDER: AdminOperation = { name: 'provider test', signIn: 'never asks' }

const Provider = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    kind: OneOf(PROVIDER_KINDS),
    issuer: Type.String(),
  },
  CLOSED,
)

export type ProviderDescription = Static<typeof Provider>

const ProviderTest = Type.Object(
  {
    id: Type.String(),
    ok: Type.Boolean(),
    reason: Type.Optional(Type.String()),
    authorization_endpoint: Type.Optional(Type.String()),
    token_endpoint: Type.Optional(Type.String()),
    jwks_uri: Type.Optional(Type.String()),
    kids: Type.Optional(Type.Array(Type.String())),
    clock_ahead_seconds: Type.Optional(Type.Integer()),
  },
  CLOSED,
)

export type ProviderTest = Static<typeof ProviderTest>

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
): Promise<ProviderTest | AdminFailure> {
  const provider = providers.find(id)
  if (!provider) return failAdmin('provider-unknown', { id })
  const refused = await recordAction(admin, { operation: TEST_PROVIDER, target: id })
  if (refused) return refused
  try {
    const report = await checkProvider(provider)
    return { id, ok: true, ...(report && describeReport(report)) }
  } catch (error) {
    return { id, ok: false, reason: describeError(error) }
  }
}

function describeReport(report: ProviderReport) {
  return {
    authorization_endpoint: report.authorizationEndpoint,
    token_endpoint: report.tokenEndpoint,
    jwks_uri: report.keySetUrl,
    kids: [...report.keyIds],
    ...(report.clockAheadSeconds !== undefined && { clock_ahead_seconds: report.clockAheadSeconds }),
  }
}

export const providerEndpoints = [
  defineEndpoint({
    method: 'GET',
    path: '/providers',
    title: 'Sign-in providers',
    result: Type.Object({ items: Type.Array(Provider) }, CLOSED),
    handle: async ({ context }) => ({ items: listProviders(context) }),
  }),
  defineEndpoint({
    method: 'POST',
    path: '/providers/:id/test',
    title: 'Test a sign-in provider',
    description: 'Fetches metadata and keys, or searches the directory. Does not sign anyone in.',
    body: NONE,
    result: ProviderTest,
    operation: TEST_PROVIDER,
    handle: ({ admin, context, params: { id = '' } }) => testProvider(admin, context, id),
  }),
]
