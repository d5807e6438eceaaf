import type { LoginProvider, Settings } from '../../../config/index.ts'
import { isFailure } from '../../../core/index.ts'
import type { Claims } from '../../../jwt/index.ts'
import type { Sealer, Store } from '../../../store/index.ts'
import { formatFhirUser } from '../../base/user.ts'
import { findAccount, type MatchedAccount } from '../../users/sign-in/account.ts'
import { makeRules } from '../../users/validity/rule.ts'
import { makeLookupContext } from './fhir-users.ts'

interface SignInExplanation {
  readonly allowed: boolean
  readonly rows: readonly (readonly [label: string, value: string])[]
}

/** Says who would be signed in with these claims, as a sign-in decides it. Changes nothing. */
export async function explainSignIn(
  options: {
    readonly settings: Settings
    readonly store: Store
    readonly sealer: Sealer
    readonly fetch?: typeof globalThis.fetch
  },
  provider: LoginProvider,
  subject: string,
  claims: Claims,
): Promise<SignInExplanation> {
  const { settings, store } = options
  const rules = makeRules(settings, () => settings.login)
  const context = { ...makeLookupContext(options), store, rules }
  const account = await findAccount(context, provider, subject, claims)
  const rows = [
    ['Provider', provider.id],
    ['Subject', subject],
  ] as const
  return isFailure(account)
    ? { allowed: false, rows: [...rows, ['Refused', `${account.reason}. ${account.text}`]] }
    : { allowed: true, rows: [...rows, ...describeAccount(account)] }
}

const KINDS = {
  linked: 'linked clinician',
  provisioned: 'provisioned account',
  new: 'new account',
} as const satisfies Record<MatchedAccount['kind'], string>

function describeAccount({ kind, username, displayName, fhirUserId, admin }: MatchedAccount) {
  return [
    ['Signs in as', `${username} (${displayName}), ${KINDS[kind]}`],
    ['FHIR user', formatFhirUser(fhirUserId) || 'none: the account opens no records'],
    ['Administrator', admin ? 'yes' : 'no'],
  ] as const
}
