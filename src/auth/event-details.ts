import type { Claims } from '../jwt/index.ts'
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

const LONGEST_VALUE = 1000
const MOST_EXPECTED = 5

export function describeRefusalDetails({ detail, compared }: Refusal): EventDetails | undefined {
  if (detail === undefined && compared.length === 0) return undefined
  return { detail, compared: limitComparisons(compared) }
}

/** Tokens, codes and secrets have at least 43 characters of these. An app may send one in the wrong parameter. */
const LIKE_A_SECRET = /[\w~+=-]{40,}/g

export function limitComparisons(compared: readonly Comparison[]): readonly Comparison[] {
  return compared.map(({ name, sent, expected, origin }) => ({
    ...{ name, origin },
    sent: sent === undefined ? undefined : cut(hideSecrets(name, sent)),
    expected: expected.slice(0, MOST_EXPECTED).map(cut),
  }))
}

function hideSecrets(name: string, sent: string): string {
  return (name === 'redirect_uri' ? hideQueryValues(sent) : sent).replace(LIKE_A_SECRET, '…')
}

/** A redirect URI that is not registered may contain anything. */
function hideQueryValues(uri: string): string {
  return uri
    .replace(/\/\/[^/?#]*@/, '//…@')
    .replace(/#.*/s, '#…')
    .replace(/([?&][^=&#]*=)[^&#]+/g, '$1…')
}

function cut(text: string): string {
  return text.length <= LONGEST_VALUE ? text : `${text.slice(0, LONGEST_VALUE)}…`
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
