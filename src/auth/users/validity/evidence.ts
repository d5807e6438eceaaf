import {
  type ClaimRule,
  describeProvider,
  type LoginProvider,
  type ProviderTraits,
} from '../../../config/index.ts'
import { sha256 } from '../../../store/index.ts'
import { CLOCK_TOLERANCE_SECONDS } from '../../base/limits.ts'

/** What the rules of an identity provider accepted at a sign-in. Of the claims, it has only values that a rule names. */
export interface Evidence {
  readonly allow?: ClaimRule | undefined
  readonly admin?: ClaimRule | undefined
  readonly acr?: string | undefined
  /** Seconds from the authentication at the provider to the sign-in; undefined if the provider did not say. */
  readonly age?: number | undefined
  /** The rule that maps users to Practitioners. */
  readonly mapping: string
  /** Where a directory looks for users and their groups. */
  readonly directory?: string | undefined
}

/** Whether the provider would still accept a sign-in with this evidence. Whatever the evidence does not show, it would not. */
export function isStillAccepted(
  provider: LoginProvider,
  evidence: Evidence | undefined,
  isProvisioned = false,
): boolean {
  return (
    evidence !== undefined &&
    meetsRule(provider.allow, evidence.allow) &&
    (!isProvisioned || evidence.mapping === describeMapping(provider)) &&
    evidence.directory === describeDirectory(provider) &&
    isStrongEnough(describeProvider(provider), evidence)
  )
}

/** Whether the provider would still call the user an administrator. */
export function isStillAdministrator(provider: LoginProvider, evidence: Evidence | undefined): boolean {
  return provider.admin !== undefined && meetsRule(provider.admin, evidence?.admin)
}

function meetsRule(rule: ClaimRule | undefined, matched: ClaimRule | undefined): boolean {
  if (!rule) return true
  return matched?.claim === rule.claim && matched.values.some(value => rule.values.includes(value))
}

function isStrongEnough(
  { acrValues, maxAge }: Pick<ProviderTraits, 'acrValues' | 'maxAge'>,
  { acr, age }: Evidence,
): boolean {
  const isRecent = maxAge === undefined || (age !== undefined && age <= maxAge + CLOCK_TOLERANCE_SECONDS)
  return isRecent && (acrValues.length === 0 || acrValues.some(value => value === acr))
}

export function describeMapping(provider: LoginProvider): string {
  return sha256(JSON.stringify([provider.fhirUser ?? null, describeProvider(provider).users]))
}

export function describeDirectory(provider: LoginProvider): string | undefined {
  const { directory } = describeProvider(provider)
  return directory && sha256(JSON.stringify(directory))
}
