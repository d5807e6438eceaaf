import { getProviderIssuer, type LoginProvider, type OidcProvider } from '../../../config/index.ts'
import { createProviderClient, type ProviderClient, type ProviderClientOptions } from './provider-client.ts'

/** The sign-in providers of the settings, each with its own client: one that is unreachable delays no other. */
export interface Providers {
  readonly all: readonly LoginProvider[]
  find(id: string): LoginProvider | undefined
  findByIssuer(issuer: unknown): LoginProvider | undefined
  getClient(provider: OidcProvider): ProviderClient
  /** With several providers, a response must show which one sent it, against mix-up attacks (RFC 9700, 4.4). */
  readonly canBeMixedUp: boolean
}

export function createProviders(
  all: readonly LoginProvider[],
  options: Omit<ProviderClientOptions, 'provider'>,
): Providers {
  const oidc = all.filter(provider => provider.kind === 'oidc')
  const clients = new Map(
    oidc.map(provider => [provider.id, createProviderClient({ ...options, provider })] as const),
  )
  return {
    all,
    find: id => all.find(provider => provider.id === id),
    findByIssuer: issuer => all.find(provider => getProviderIssuer(provider) === issuer),
    getClient(provider) {
      const client = clients.get(provider.id)
      if (!client) throw new Error(`There is no provider ${provider.id}`)
      return client
    },
    canBeMixedUp: oidc.length > 1,
  }
}
