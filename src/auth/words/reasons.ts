/**
 * Every reason for which the auth server refuses an expected request, with its words. Responses, error pages, the audit
 * trail, `/activity`, `sallyport problems` and docs/errors.md have their words from here, and nothing decides by a sentence.
 */

import { API_REASONS, LAUNCH_REASONS } from '../../app-reasons/index.ts'
import {
  type FactsArgument,
  type FactsIn,
  fill,
  findOwn,
  type InnerReason,
  joinTables,
  type StoredFacts,
} from '../../core/index.ts'
import { FHIR_REASON_TABLES } from '../../fhir/index.ts'
import { ADMINISTRATION } from './administration.ts'
import { AUTHORIZATION, AUTHORIZATION_PAGES } from './authorization.ts'
import { CLIENT_AUTHENTICATION, INTROSPECTION, REGISTRATION } from './clients.ts'
import { FAULTS } from './faults.ts'
import { LAUNCHES } from './launches.ts'
import { LINK_ERRORS, LINKS } from './links.ts'
import { OLD_REASONS } from './old-reasons.ts'
import { PROPOSALS } from './proposals.ts'
import type { Words } from './reason.ts'
import { LOGOUT_TOKENS, OWN_SIGN_IN, PROVIDER_SIGN_IN } from './sign-in.ts'
import { COMMANDS, TOKENS } from './tokens.ts'

export const OAUTH_REASONS = {
  ...AUTHORIZATION,
  ...CLIENT_AUTHENTICATION,
  ...TOKENS,
  ...REGISTRATION,
  ...COMMANDS,
  ...LINK_ERRORS,
  ...LOGOUT_TOKENS,
} as const

export const PAGE_REASONS = {
  ...AUTHORIZATION_PAGES,
  ...LAUNCHES,
  ...PROPOSALS,
  ...LINKS,
  ...INTROSPECTION,
  ...OWN_SIGN_IN,
} as const

export type OAuthReason = keyof typeof OAUTH_REASONS
export type PageReason = keyof typeof PAGE_REASONS

type Table = typeof OAUTH_REASONS & typeof PAGE_REASONS

export type AnyWords = Words & { readonly hint?: string }

/** The facts that a reason needs. */
export type FactsOf<Reason extends keyof Table> = FactsIn<Table[Reason]>

/** All tables, by their titles in docs/errors.md. */
export const REASON_TABLES = {
  ...FHIR_REASON_TABLES,
  'Authorization requests, and requests to sign out': { ...AUTHORIZATION, ...AUTHORIZATION_PAGES },
  'Authentication of apps': CLIENT_AUTHENTICATION,
  'Token requests': TOKENS,
  Introspection: INTROSPECTION,
  'Registration of apps': REGISTRATION,
  'Launches by the portal and by an EHR': LAUNCHES,
  'Proposals of assistants': PROPOSALS,
  'Links and errors for developers': { ...LINKS, ...LINK_ERRORS },
  'Commands for developers': COMMANDS,
  'Sign-in at this server': OWN_SIGN_IN,
  'Sign-in with a provider': PROVIDER_SIGN_IN,
  'Logout tokens of providers': LOGOUT_TOKENS,
  Administration: ADMINISTRATION,
  'App server: launches': LAUNCH_REASONS,
  'App server: session API': API_REASONS,
} as const

const ALL = { ...joinTables(REASON_TABLES), ...OLD_REASONS }

export type AnyReason = keyof typeof ALL

/** The words of a reason in the audit trail. Undefined for one of a later release, and for a record without a reason. */
export function findWords(reason: string | undefined): AnyWords | undefined {
  return reason === undefined ? undefined : findOwn<AnyWords>(ALL, reason)
}

export function getWords(reason: AnyReason): AnyWords {
  return ALL[reason]
}

/** Fills a text whose facts may be faults of values, or other reasons. */
export function fillWords(text: string, facts: StoredFacts): string {
  return fill(text, facts, describeInner)
}

function describeInner({ reason, facts }: InnerReason): string {
  return fillWords(findOwn(FAULTS, reason) ?? findWords(reason)?.sentence ?? reason, facts)
}

/** The status and the sentence of a reason that is not one of OAuth. */
export function describePage<Reason extends PageReason>(
  reason: Reason,
  ...[facts]: FactsArgument<FactsOf<Reason>>
): {
  readonly status: (typeof PAGE_REASONS)[Reason]['status']
  readonly sentence: string
  readonly facts: StoredFacts
} {
  const { status, sentence } = PAGE_REASONS[reason]
  return { status, sentence: fillWords(sentence, facts ?? {}), facts: facts ?? {} }
}
