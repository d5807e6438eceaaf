import { isDeepStrictEqual } from 'node:util'
import { isRedirecting, type LoginProvider, type OidcProvider, type Settings } from '../../../config/index.ts'
import { checkDirectory } from './ldap/directory.ts'
import {
  checkOidcProvider,
  createProviderClient,
  type ProviderClient,
  type ProviderClientOptions,
  type ProviderReport,
} from './oidc/client.ts'

type LoginSettings = Pick<Settings['login'], 'passwords' | 'secondFactor' | 'providers' | 'order'>

/** The ways to sign in, each provider with its own client: one that is unreachable delays no other. */
export interface Providers {
  /** Whether clinicians may sign in with a password of the clinician table. */
  readonly passwords: boolean
  readonly secondFactor: Settings['login']['secondFactor']
  readonly all: readonly LoginProvider[]
  /** The sign-in methods as the sign-in page shows them: `password`, and the providers. */
  readonly ordered: readonly ('password' | LoginProvider)[]
  find(id: string): LoginProvider | undefined
  getClient(provider: OidcProvider): ProviderClient
  /** With several providers, a response must show which one sent it, against mix-up attacks (RFC 9700, 4.4). */
  readonly canBeMixedUp: boolean
  /** A provider whose settings are the same keeps its client. */
  replace(login: LoginSettings): void
}

/** Rejects with the reason if nobody can sign in with the provider. */
export async function checkProvider(provider: LoginProvider): Promise<ProviderReport | undefined> {
  switch (provider.kind) {
    case 'oidc':
      return checkOidcProvider(provider)
    case 'ldap':
      await checkDirectory(provider)
      return undefined
  }
}

/** The methods that the settings name come first. */
function listInOrder({
  passwords,
  providers,
  order,
}: LoginSettings): readonly ('password' | LoginProvider)[] {
  const methods = [...(passwords ? (['password'] as const) : []), ...providers]
  const getPlace = (method: 'password' | LoginProvider) => {
    const place = order.indexOf(method === 'password' ? method : method.id)
    return place < 0 ? order.length : place
  }
  return methods.toSorted((one, other) => getPlace(one) - getPlace(other))
}

interface Opened {
  readonly provider: OidcProvider
  readonly client: ProviderClient
}

export function createProviders(
  initial: LoginSettings,
  options: Omit<ProviderClientOptions, 'provider'>,
): Providers {
  let login = initial
  let opened: readonly Opened[] = []

  function open(provider: OidcProvider): Opened {
    const same = opened.find(known => isDeepStrictEqual(known.provider, provider))
    return same ?? { provider, client: createProviderClient({ ...options, provider }) }
  }

  function replace(next: LoginSettings): void {
    login = next
    opened = next.providers.filter(isRedirecting).map(open)
  }

  replace(initial)
  return {
    get passwords() {
      return login.passwords
    },
    get secondFactor() {
      return login.secondFactor
    },
    get all() {
      return login.providers
    },
    get ordered() {
      return listInOrder(login)
    },
    get canBeMixedUp() {
      return opened.length > 1
    },
    find: id => login.providers.find(provider => provider.id === id),
    getClient(provider) {
      const found = opened.find(known => known.provider.id === provider.id)
      if (!found) throw new Error(`There is no provider ${provider.id}`)
      return found.client
    },
    replace,
  }
}
