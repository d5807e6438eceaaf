import type { Interaction } from '../fhir/index.ts'
import type { Algorithm } from '../jwt/index.ts'
import {
  type Authenticated,
  type Authenticator,
  type AuthFailure,
  computeAccess,
  type EnforcementPolicy,
  type Grant,
  type ScopeContext,
} from '../smart/index.ts'
import { decide } from './decision/decide.ts'
import type { Decision } from './decision/decision.ts'
import type { Refusal } from './refusal.ts'
import { refuse } from './refuse.ts'
import { withoutSlash } from './token/check-claims.ts'
import { grantOf } from './token/grant-of.ts'
import { type Fetch, keySet } from './token/key-set.ts'
import { marksOf, revocations } from './token/revocations.ts'
import { foreignGrantOf, TRUSTED_ALGORITHMS, type TrustedIssuer } from './token/trusted-issuer.ts'
import { type Issuer, type Verified, type Verify, verifier } from './token/verifier.ts'

export interface InterceptorOptions {
  /** The auth server: the issuer of the tokens, and where `/oauth2/jwks` is. */
  readonly authUrl: string
  /** Other issuers whose access tokens are honoured, each by its own rules. */
  readonly trustedIssuers?: readonly TrustedIssuer[] | undefined
  /** The FHIR base: the audience of the tokens. */
  readonly fhirBaseUrl: string
  /** The scope contexts that are honoured; only `patient` unless told (contract 5.4). */
  readonly contexts?: readonly ScopeContext[] | undefined
  /** The permission that a search needs: `r`, the service's rule, or `s` as SMART has it (contract 5.5). */
  readonly searchPermission?: 'r' | 's' | undefined
  /** What a user may reach whatever a `user/` scope says. */
  readonly userFilter?: EnforcementPolicy['userFilter'] | undefined
  /** The operations that the server offers; by default those of the embedded server. */
  readonly operations?: EnforcementPolicy['operations'] | undefined
  /** Whether a grant was revoked, beside what the auth server's own list says. Asked on every request. */
  readonly revoked?: ((grant: Grant) => boolean | Promise<boolean>) | undefined
  /** Told of what went wrong inside; the request itself is refused. */
  readonly onError?: ((error: unknown) => void) | undefined
  /** Told why a key set that was fetched cannot be used. */
  readonly onUnusableKeySet?: ((url: string, reason: string) => void) | undefined
  readonly fetch?: Fetch | undefined
  readonly clock?: (() => number) | undefined
  readonly verify?: Verify | undefined
}

/** A caller whose token is good, and the decision on each of its interactions in full. */
export interface Caller extends Authenticated {
  readonly grant: Grant
  judge(interaction: Interaction): Decision
}

/** A caller, and what the auth server's list would name the token by. */
type Known = Caller & { readonly marks: readonly string[] }

export interface Interceptor extends Authenticator {
  authenticate(authorization: string | undefined): AuthFailure | Caller | Promise<AuthFailure | Caller>
  readonly policy: EnforcementPolicy
  /** Whether a key set is in the cache, of any issuer. */
  ready(): boolean
  /** Fetches the key set and what was revoked, and keeps both fresh until it is closed. Never fails: an auth server that is away is asked again. */
  start(): Promise<void>
  close(): void
}

const OWN_ALGORITHMS: readonly Algorithm[] = ['RS256']
const TICK_MS = 500
// As often as the list of what was revoked: a key that was withdrawn because it leaked is gone as soon.
const OWN_KEYS_MS = 1_500

/** The scope-enforcement interceptor (service.md 1.2): the guard of a FHIR server. */
export function createInterceptor(options: InterceptorOptions): Interceptor {
  const policy = policyOf(options)
  const clock = options.clock ?? Date.now
  const { fhirBaseUrl } = policy
  const fetchKeys: Fetch = options.fetch ?? ((url, init) => fetch(url, init))
  const keysAt = (url: string, algorithms: readonly Algorithm[], refreshMs?: number) =>
    keySet({
      ...{ url, algorithms, fetch: fetchKeys, clock, refreshMs },
      onRemoval: () => tokens.forget(),
      onUnusable: reason => options.onUnusableKeySet?.(url, reason),
    })
  const authUrl = withoutSlash(options.authUrl)
  const revoked = revocations({ url: `${authUrl}/oauth2/revocations`, fetch: fetchKeys, clock })
  const own: Issuer<Known> = {
    issuer: authUrl,
    audiences: [fhirBaseUrl],
    algorithms: OWN_ALGORITHMS,
    keys: keysAt(`${authUrl}/oauth2/jwks`, OWN_ALGORITHMS, OWN_KEYS_MS),
    grantOf: claims => grantOf(claims, fhirBaseUrl),
    callerOf: grant => ({ ...callerOf(grant, policy, broken), marks: marksOf(grant.tokenId) }),
  }
  const others = (options.trustedIssuers ?? []).map(
    (trusted): Issuer<Known> => ({
      issuer: trusted.issuer,
      audiences: trusted.audiences?.map(withoutSlash) ?? [fhirBaseUrl],
      types: trusted.types,
      algorithms: TRUSTED_ALGORITHMS,
      keys: keysAt(trusted.jwksUrl, TRUSTED_ALGORITHMS),
      grantOf: claims => foreignGrantOf(claims, trusted, fhirBaseUrl),
      callerOf: grant => ({ ...callerOf(grant, policy, broken), marks: [] }),
    }),
  )
  // Nobody else speaks in the name of our auth server.
  const issuers = [own, ...others.filter(it => it.issuer !== own.issuer)] as const
  const tokens = verifier<Known>({ issuers, clock, verify: options.verify })
  const keepFresh = () => Promise.all([...issuers.map(it => it.keys.keepFresh()), revoked.keepFresh()])

  // Whatever throws becomes a refusal.
  function broken(error: unknown): Refusal {
    options.onError?.(error)
    return { kind: 'broken' }
  }

  function admitted(found: Verified<Known>): AuthFailure | Caller | Promise<AuthFailure | Caller> {
    if (found.kind === 'late')
      return { ...refuse({ kind: 'expired-token' }), rejectedGrant: found.caller.grant }
    if (found.kind !== 'caller') return refuse(found)
    const { caller } = found
    if (revoked.isRevoked(caller.marks)) return { ...refuse(REVOKED), rejectedGrant: caller.grant }
    return options.revoked ? unlessRevoked(caller, options.revoked) : caller
  }

  function admit(authorization: string | undefined): AuthFailure | Caller | Promise<AuthFailure | Caller> {
    const found = tokens.verify(authorization)
    return found instanceof Promise ? found.then(admitted) : admitted(found)
  }

  let timer: NodeJS.Timeout | undefined
  return {
    policy,
    ready: () => issuers.some(it => it.keys.ready()),
    async start() {
      timer ??= setInterval(() => void keepFresh(), TICK_MS).unref()
      await keepFresh()
    },
    close: () => clearInterval(timer),
    authenticate(authorization) {
      try {
        const judged = admit(authorization)
        return judged instanceof Promise ? judged.catch(error => refuse(broken(error))) : judged
      } catch (error) {
        return refuse(broken(error))
      }
    },
  }
}

const REVOKED = { kind: 'bad-token', why: 'it was revoked' } as const

async function unlessRevoked(
  caller: Caller,
  revoked: NonNullable<InterceptorOptions['revoked']>,
): Promise<AuthFailure | Caller> {
  return (await revoked(caller.grant)) ? { ...refuse(REVOKED), rejectedGrant: caller.grant } : caller
}

function policyOf(options: InterceptorOptions): EnforcementPolicy {
  const { fhirBaseUrl, contexts, searchPermission, userFilter, operations } = options
  return {
    fhirBaseUrl: withoutSlash(fhirBaseUrl),
    contexts: contexts ?? ['patient'],
    searchPermission: searchPermission ?? 'r',
    ...(userFilter && { userFilter: userFilter }),
    ...(operations && { operations }),
  }
}

function callerOf(grant: Grant, policy: EnforcementPolicy, broken: (error: unknown) => Refusal): Caller {
  const access = computeAccess(grant, policy)
  const judge = (interaction: Interaction): Decision => {
    try {
      return decide(interaction, grant, policy, access)
    } catch (error) {
      return { allowed: false, refusal: broken(error) }
    }
  }
  return {
    allowed: true,
    grant,
    judge,
    decide(interaction) {
      const decision = judge(interaction)
      if (!decision.allowed) return refuse(decision.refusal)
      const { access, by } = decision
      return { allowed: true, access, by: typeof by === 'string' ? by : by.text }
    },
  }
}
