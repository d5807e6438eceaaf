/**
 * The rights of a provider's user follow from groups: who may sign in (`allow`), and who is an administrator (`admin`).
 * The groups of a directory are the claim `groups`, which ldap/directory.ts reads.
 * users/sign-in/account.ts asks who may sign in, and users/find-login.ts, at each request, who is an administrator.
 */
import type { ClaimRule, LoginProvider } from '../../../config/index.ts'
import { isRecord } from '../../../core/index.ts'
import type { Claims } from '../../../jwt/index.ts'
import { describeDirectory, describeMapping, type Evidence } from '../validity/evidence.ts'
import { findClaim } from './identity.ts'
import type { ProviderLogin } from './provider-login.ts'
import { SignInRefusal } from './refusal.ts'

/** A user may sign in if `allow` names one of the user's groups. Unreadable groups refuse everyone. */
export function checkAllowed(provider: LoginProvider, claims: Claims): SignInRefusal | undefined {
  const { allow } = provider
  if (!allow || findMatch(claims, allow)) return undefined
  return isDistributed(claims, allow.claim)
    ? new SignInRefusal('too-many-groups', `The claim ${allow.claim} is not in the token or the user info`)
    : new SignInRefusal('not-allowed', `The claim ${allow.claim} has none of the allowed values`)
}

/** OIDC Core, 5.6.2: the claim is elsewhere. Entra ID does this for a user of many groups. */
function isDistributed(claims: Claims, name: string): boolean {
  const names = claims._claim_names
  return isRecord(names) && Object.hasOwn(names, name) && !Object.hasOwn(claims, name)
}

/** Whether the groups make the user an administrator. The login keeps the groups as evidence, which decides later. */
export function isAdministratorBy({ admin }: LoginProvider, claims: Claims): boolean {
  return findMatch(claims, admin) !== undefined
}

/** The values of a rule that are in the claim, which is a text or a list of texts. */
function findMatch(claims: Claims, rule: ClaimRule | undefined): ClaimRule | undefined {
  if (!rule) return undefined
  const found = findClaim(claims, rule.claim)
  const texts: readonly unknown[] = Array.isArray(found) ? found : [found]
  const values = rule.values.filter(value => texts.includes(value))
  return values.length === 0 ? undefined : { claim: rule.claim, values }
}

/** What the rules of the provider accept in a sign-in. The login is good while they still do. */
export function collectEvidence(
  provider: LoginProvider,
  { claims, login }: { readonly claims: Claims; readonly login: Pick<ProviderLogin, 'acr' | 'authTime'> },
  now: number,
): Evidence {
  const { acr, authTime } = login
  return {
    allow: findMatch(claims, provider.allow),
    admin: findMatch(claims, provider.admin),
    acr,
    age: authTime === undefined ? undefined : Math.floor((now - authTime) / 1000),
    mapping: describeMapping(provider),
    directory: describeDirectory(provider),
  }
}
