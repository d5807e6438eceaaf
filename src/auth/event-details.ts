import type { Claims } from '../jwt/index.ts'
import { LIMITS } from './limits.ts'
import type { Comparison, Refusal } from './refusal.ts'
import type { UnsignedTokens } from './token/token-response.ts'

type TokenClaims = Readonly<Record<string, Claims>>

/** The details of an OAuth event, for the activity page (ACTIVITY-3). They contain no secret and no name. */
export interface EventDetails {
  /** The exact reason of a refusal, which the client does not get. */
  readonly detail?: string | undefined
  readonly compared?: readonly Comparison[] | undefined
  /** By the name of the token or response. The scopes are in the record. */
  readonly claims?: TokenClaims | undefined
}

export function describeRefusalDetails({ detail, compared }: Refusal): EventDetails | undefined {
  if (detail === undefined && compared.length === 0) return undefined
  return { detail, compared: limitComparisons(compared) }
}

/** Tokens, codes and secrets have at least 43 characters of these. An app may send one in the wrong parameter. */
const LIKE_A_SECRET = /[\w~+=-]{40,}/g

export function limitComparisons(compared: readonly Comparison[]): readonly Comparison[] {
  return compared.map(({ name, sent, expected, origin }) => ({
    ...{ name, origin },
    sent: sent === undefined ? undefined : cut(hideSecrets(sent)),
    expected: expected.slice(0, LIMITS.detailValues).map(cut),
  }))
}

function hideSecrets(sent: string): string {
  return (IS_URL.test(sent) ? hideQueryValues(sent) : sent).replace(LIKE_A_SECRET, '…')
}

const IS_URL = /^[a-z][\w+.-]*:/i

/** A URL that is not registered may contain anything. No name contains `?`, so that many of them take no longer. */
function hideQueryValues(url: string): string {
  return url
    .replace(/\/\/[^/?#]*@/, '//…@')
    .replace(/#.*/s, '#…')
    .replace(/([?&][^=&?#]*=)[^&#]+/g, '$1…')
}

function cut(text: string): string {
  return text.length <= LIMITS.detailCharacters ? text : `${text.slice(0, LIMITS.detailCharacters)}…`
}

export function describeTokens({ accessToken, idToken }: UnsignedTokens): TokenClaims {
  return {
    access_token: selectClaims(accessToken),
    ...(idToken && { id_token: selectClaims(idToken) }),
  }
}

/** The name may be that of a patient; the nonce belongs to the app. */
export function selectClaims({ scope, name, nonce, ...claims }: Claims): Claims {
  return Object.fromEntries(
    Object.entries(claims).map(([claim, value]) => [claim, typeof value === 'string' ? cut(value) : value]),
  )
}

export function readDetails(text: string | null): EventDetails {
  return text === null ? {} : JSON.parse(text)
}
