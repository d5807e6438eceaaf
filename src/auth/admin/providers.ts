import { getProviderIssuer, type LoginProvider } from '../../config/index.ts'
import { describeError } from '../../core/index.ts'
import type { AuthContext } from '../oauth/context.ts'
import type { ProviderReport } from '../users/providers/provider-client.ts'
import { checkProvider } from '../users/providers/providers.ts'
import { type Admin, AdminFailure, type Operation, recordAction } from './action.ts'

export const TEST_PROVIDER: Operation = { name: 'provider test', signIn: 'never asks' }

export interface ProviderDescription {
  readonly id: string
  readonly name: string
  readonly kind: LoginProvider['kind']
  readonly issuer: string
}

export interface ProviderTest {
  readonly id: string
  readonly ok: boolean
  /** Why it cannot be used. */
  readonly reason: string | undefined
  /** Of an OpenID provider that can be used. */
  readonly report: ProviderReport | undefined
}

export function listProviders({ providers }: Pick<AuthContext, 'providers'>): readonly ProviderDescription[] {
  return providers.all.map(provider => ({
    id: provider.id,
    name: provider.name,
    kind: provider.kind,
    issuer: getProviderIssuer(provider),
  }))
}

/** Fetches the metadata and the keys of a provider, or searches the directory, without a cache. Signs nobody in. */
export async function testProvider(
  admin: Admin,
  { providers }: Pick<AuthContext, 'providers'>,
  id: string,
): Promise<ProviderTest | AdminFailure> {
  const provider = providers.find(id)
  if (!provider) return new AdminFailure('not_found', `there is no sign-in provider ${id}`)
  await recordAction(admin, { operation: TEST_PROVIDER, target: id })
  try {
    return { id, ok: true, reason: undefined, report: await checkProvider(provider) }
  } catch (error) {
    return { id, ok: false, reason: describeError(error), report: undefined }
  }
}
