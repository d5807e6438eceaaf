import type { FactsArgument } from '../../core/index.ts'
import { Failing, type StoredFacts } from '../../core/index.ts'
import type { ComparedValue, OAuthWords, RefusalCode } from '../words/reason.ts'
import { type FactsOf, fillWords, OAUTH_REASONS, type OAuthReason } from '../words/reasons.ts'
/** A verified redirect URI that an error may be sent to. */
export interface ReturnTarget {
  readonly redirectUri: string
  readonly state: string | undefined
  /** Whether the response to this client has no `iss` parameter. */
  readonly omitsIss: boolean
}

/** What is known about a refused request, for the audit trail only. */
export interface KnownParties {
  /** A registered client, authenticated or not. */
  readonly clientId?: string | undefined
  /** Whether the client is approved and was authenticated by a secret or a key. */
  readonly isAuthenticated?: boolean
  readonly launchId?: string | undefined
  readonly patientId?: string | undefined
  /** Why this request revoked a grant. */
  readonly endedGrant?: string | undefined
}

/**
 * A refused request. `description` is for the client and its developers, `detail` for the log only. It may be redirected
 * only if `returnTo` is set (RFC 6749, 4.1.2.1).
 */
export class AuthRefusal extends Failing {
  readonly reason: OAuthReason
  readonly facts: StoredFacts
  readonly error: RefusalCode
  readonly returnTo: ReturnTarget | undefined
  readonly known: KnownParties
  readonly compared: readonly ComparedValue[]

  constructor(
    reason: OAuthReason,
    facts: StoredFacts,
    more: Partial<Pick<AuthRefusal, 'error' | 'returnTo' | 'known' | 'compared'>> = {},
  ) {
    super()
    this.reason = reason
    this.facts = facts
    this.error = more.error ?? OAUTH_REASONS[reason].error
    this.returnTo = more.returnTo
    this.known = more.known ?? {}
    this.compared = more.compared ?? []
  }

  get description(): string {
    return fillWords(OAUTH_REASONS[this.reason].sentence, this.facts)
  }

  get detail(): string | undefined {
    const { detail }: OAuthWords = OAUTH_REASONS[this.reason]
    return detail === undefined ? undefined : fillWords(detail, this.facts)
  }

  withError(error: RefusalCode): AuthRefusal {
    return new AuthRefusal(this.reason, this.facts, { ...this, error })
  }

  withReturnTo(returnTo: ReturnTarget): AuthRefusal {
    return new AuthRefusal(this.reason, this.facts, { ...this, returnTo })
  }

  withComparison(comparison: ComparedValue): AuthRefusal {
    return new AuthRefusal(this.reason, this.facts, { ...this, compared: [...this.compared, comparison] })
  }

  withKnown(known: KnownParties): AuthRefusal {
    return new AuthRefusal(this.reason, this.facts, { ...this, known: { ...this.known, ...known } })
  }
}

export function refuse<Reason extends OAuthReason>(
  reason: Reason,
  ...[facts]: FactsArgument<FactsOf<Reason>>
): AuthRefusal {
  return new AuthRefusal(reason, facts ?? {})
}

/** RFC 6749, 5.2. All others are 400. */
const STATUSES: Partial<Record<RefusalCode, 401 | 403 | 500 | 503>> = {
  invalid_client: 401,
  access_denied: 403,
  temporarily_unavailable: 503,
  server_error: 500,
}

export function getStatus(error: RefusalCode): 400 | 401 | 403 | 500 | 503 {
  return STATUSES[error] ?? 400
}
