import type { ClaimRule, FhirUserRule, LoginProvider } from '../../../config/index.ts'
import { isFailure, isRecord } from '../../../core/index.ts'
import { isId } from '../../../fhir/index.ts'
import type { Claims } from '../../../jwt/index.ts'
import { describeDirectory, describeMapping, type Evidence } from '../validity/evidence.ts'
import type { ProviderLogin } from './provider-login.ts'
import { SignInRefusal } from './refusal.ts'

/** Finds a claim by its name, or below other claims: `realm_access.roles`. */
export function findClaim(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  const [first = '', ...rest] = name.split('.')
  const inner = rest.length > 0 && Object.hasOwn(claims, first) ? claims[first] : undefined
  return isRecord(inner) ? findClaim(inner, rest.join('.')) : undefined
}

/** A non-empty text, or a number as text. */
function readTextClaim(claims: Claims, name: string): string | undefined {
  const value = findClaim(claims, name)
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
  return typeof value === 'string' && value.trim() !== '' && !value.includes('\0') ? value.trim() : undefined
}

/** Whether one of the values is in the claim, which is a text or a list of texts. */
export function matchesRule(claims: Claims, rule: ClaimRule): boolean {
  return findMatch(claims, rule) !== undefined
}

/** The values of a rule that are in the claim. */
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

/** The claims that a provider's settings use. */
export function listUsedClaims(provider: LoginProvider): readonly string[] {
  const { usernameClaim, displayNameClaim, fhirUser, allow, admin } = provider
  return [
    usernameClaim,
    displayNameClaim,
    ...(fhirUser ? listRuleClaims(fhirUser) : []),
    ...[allow, admin].flatMap(rule => (rule ? [rule.claim] : [])),
  ]
}

const PLACEHOLDER = /\{([^{}]+)\}/g

function listRuleClaims(rule: FhirUserRule): readonly string[] {
  if (rule.kind === 'claim') return [rule.claim]
  const text = rule.kind === 'template' ? rule.template : rule.search
  return [...text.matchAll(PLACEHOLDER)].map(([, name = '']) => name)
}

/** A user may sign in if `allow` names one of the user's groups. Unreadable groups refuse everyone. */
export function checkAllowed(provider: LoginProvider, claims: Claims): SignInRefusal | undefined {
  const { allow } = provider
  if (!allow || matchesRule(claims, allow)) return undefined
  return isDistributed(claims, allow.claim)
    ? new SignInRefusal('too-many-groups', `The claim ${allow.claim} is not in the token or the user info`)
    : new SignInRefusal('not-allowed', `The claim ${allow.claim} has none of the allowed values`)
}

/** OIDC Core, 5.6.2: the claim is elsewhere. Entra ID does this for a user of many groups. */
export function isDistributed(claims: Claims, name: string): boolean {
  const names = claims._claim_names
  return isRecord(names) && Object.hasOwn(names, name) && !Object.hasOwn(claims, name)
}

/** The name of a provisioned account, from the claims. */
export interface AccountNames {
  readonly username: string
  readonly displayName: string
}

const USERNAME = /^[^\s\p{Cc}](?:[^\p{Cc}]{0,98}[^\s\p{Cc}])?$/u
const MAX_NAME_CHARACTERS = 200

export function readNames(provider: LoginProvider, claims: Claims): AccountNames | SignInRefusal {
  const username = readTextClaim(claims, provider.usernameClaim)
  if (username === undefined || !USERNAME.test(username))
    return new SignInRefusal('bad-claims', `The claim ${provider.usernameClaim} is not a username`)
  const displayName = readTextClaim(claims, provider.displayNameClaim)?.replace(/\p{Cc}/gu, '') ?? username
  return { username, displayName: displayName.slice(0, MAX_NAME_CHARACTERS) }
}

/** The Practitioner that the claims name, or a search for it. */
export type PractitionerQuery =
  | { readonly kind: 'id'; readonly id: string }
  | { readonly kind: 'search'; readonly query: string }

export function mapFhirUser(
  provider: LoginProvider,
  claims: Claims,
  fhirBaseUrl: string,
): PractitionerQuery | SignInRefusal {
  const { fhirUser } = provider
  if (!fhirUser) return new SignInRefusal('bad-claims', 'The provider has no fhir-user setting')
  switch (fhirUser.kind) {
    case 'claim':
      return readReference(readTextClaim(claims, fhirUser.claim), fhirUser.claim, fhirBaseUrl)
    case 'template': {
      const filled = fillPlaceholders(fhirUser.template, claims, text => text)
      return isFailure(filled) ? filled : readReference(filled, 'template', fhirBaseUrl)
    }
    case 'search': {
      const filled = fillPlaceholders(fhirUser.search, claims, encodeSearchValue)
      return isFailure(filled) ? filled : { kind: 'search', query: filled }
    }
  }
}

function readReference(
  text: string | undefined,
  name: string,
  fhirBaseUrl: string,
): PractitionerQuery | SignInRefusal {
  if (text === undefined) return new SignInRefusal('bad-claims', `The claim ${name} is missing`)
  const below = text.startsWith(`${fhirBaseUrl}/`) ? text.slice(fhirBaseUrl.length + 1) : text
  if (/^[a-z][a-z0-9+.-]*:/i.test(below))
    return new SignInRefusal('bad-claims', `The ${name} names another FHIR server`)
  const [type, id = '', ...more] = below.split('/')
  return type === 'Practitioner' && isId(id) && more.length === 0
    ? { kind: 'id', id }
    : new SignInRefusal('bad-claims', `The ${name} does not name a Practitioner`)
}

function fillPlaceholders(
  text: string,
  claims: Claims,
  encode: (value: string) => string,
): string | SignInRefusal {
  const missing = [...text.matchAll(PLACEHOLDER)].find(
    ([, name = '']) => readTextClaim(claims, name) === undefined,
  )
  if (missing) return new SignInRefusal('bad-claims', `The claim ${missing[1]} is missing`)
  return text.replace(PLACEHOLDER, (_, name) => encode(readTextClaim(claims, name) ?? ''))
}

/** FHIR R4, 3.1.1.2: `\` escapes the separators, so that a claim cannot add values to the search. */
function encodeSearchValue(value: string): string {
  return encodeURIComponent(value.replace(/[\\,|$]/g, '\\$&'))
}
