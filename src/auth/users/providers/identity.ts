import { describeProvider, type FhirUserRule, type LoginProvider } from '../../../config/index.ts'
import { isFailure, isRecord, isUsername, toPlainLine } from '../../../core/index.ts'
import { isId } from '../../../fhir/index.ts'
import type { Claims } from '../../../jwt/index.ts'
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

/** The name of a provisioned account, from the claims. */
export interface AccountNames {
  readonly username: string
  readonly displayName: string
}

const MAX_NAME_CHARACTERS = 200

export function readNames(provider: LoginProvider, claims: Claims): AccountNames | SignInRefusal {
  const username = readTextClaim(claims, provider.usernameClaim)
  if (username === undefined || !isUsername(username))
    return new SignInRefusal('bad-claims', `The claim ${provider.usernameClaim} is not a username`)
  const name = toPlainLine(readTextClaim(claims, provider.displayNameClaim) ?? '')
  return { username, displayName: name.slice(0, MAX_NAME_CHARACTERS) || username }
}

/** The kind of resource that the users of a provider are. */
export function getUserType(provider: LoginProvider): 'Practitioner' | 'Patient' {
  return describeProvider(provider).users === 'patients' ? 'Patient' : 'Practitioner'
}

/** The Practitioner, or the Patient, that the claims name, or a search for it. */
export type UserQuery =
  | { readonly kind: 'id'; readonly id: string }
  | { readonly kind: 'search'; readonly query: string }

export function mapFhirUser(
  provider: LoginProvider,
  claims: Claims,
  fhirBaseUrl: string,
): UserQuery | SignInRefusal {
  const { fhirUser } = provider
  const type = getUserType(provider)
  if (!fhirUser) return new SignInRefusal('bad-claims', 'The provider has no fhir-user setting')
  switch (fhirUser.kind) {
    case 'claim':
      return readReference(readTextClaim(claims, fhirUser.claim), fhirUser.claim, type, fhirBaseUrl)
    case 'template': {
      const filled = fillPlaceholders(fhirUser.template, claims, text => text)
      return isFailure(filled) ? filled : readReference(filled, 'template', type, fhirBaseUrl)
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
  wanted: 'Practitioner' | 'Patient',
  fhirBaseUrl: string,
): UserQuery | SignInRefusal {
  if (text === undefined) return new SignInRefusal('bad-claims', `The claim ${name} is missing`)
  const below = text.startsWith(`${fhirBaseUrl}/`) ? text.slice(fhirBaseUrl.length + 1) : text
  if (/^[a-z][a-z0-9+.-]*:/i.test(below))
    return new SignInRefusal('bad-claims', `The ${name} names another FHIR server`)
  const [type, id = '', ...more] = below.split('/')
  return type === wanted && isId(id) && more.length === 0
    ? { kind: 'id', id }
    : new SignInRefusal('bad-claims', `The ${name} does not name a ${wanted}`)
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
