import type { AuditRecord } from '../audit-record/index.ts'
import { type Fetch, isFailure } from '../core/index.ts'
import { failFor, type Interaction, type Resource, Work } from '../fhir/index.ts'
import type { Algorithm } from '../jwt/index.ts'
import {
  type Authenticated,
  type Authenticator,
  type AuthFailure,
  computeAccess,
  type EnforcementPolicy,
  type Grant,
  type ScopeContext,
  type VersionAccess,
} from '../smart/index.ts'
import { decide } from './decision/decide.ts'
import type { Decision } from './decision/decision.ts'
import { listRequiredScopes, type Refusal, refuse } from './refuse.ts'
import { readGrant, removeTrailingSlash } from './token/check-claims.ts'
import { createKeySet, type KeySet } from './token/key-set.ts'
import { computeRevocationKeys, createRevocations } from './token/revocations.ts'
import {
  createVerifier,
  type Issuer,
  readTrustedGrant,
  TRUSTED_ALGORITHMS,
  type TrustedIssuer,
  type Verified,
  type Verifier,
  type Verify,
} from './token/verifier.ts'

export interface InterceptorOptions {
  /** The auth server: issues the tokens and serves `/oauth2/jwks`. Without it, only trusted issuers are accepted. */
  readonly authUrl?: string | undefined
  /** Other issuers whose access tokens are accepted, each by its own rules. */
  readonly trustedIssuers?: readonly TrustedIssuer[] | undefined
  /** The FHIR base: the audience of the tokens. */
  readonly fhirBaseUrl: string
  /** The scope contexts that are enforced; by default only `patient`. */
  readonly contexts?: readonly ScopeContext[] | undefined
  /** The permission that a search needs: `r` by default, or `s` as in SMART 2.2. */
  readonly searchPermission?: 'r' | 's' | undefined
  /** Limits what a user may access, whatever a `user/` scope grants. */
  readonly userFilter?: EnforcementPolicy['userFilter'] | undefined
  /** Further types that only a `system/` scope that names them may write. */
  readonly protectedTypes?: EnforcementPolicy['protectedTypes'] | undefined
  /** The scope contexts in which a limited caller may write what gives others access; by default `system`. */
  readonly relationContexts?: EnforcementPolicy['relationContexts'] | undefined
  /** Whether care teams give access to patients, so that they are protected like `RelatedPerson`. */
  readonly careTeamsGiveAccess?: EnforcementPolicy['careTeamsGiveAccess'] | undefined
  /** The operations that the server offers; by default those of the embedded server. */
  readonly operations?: EnforcementPolicy['operations'] | undefined
  /** Whether a grant was revoked, in addition to the auth server's revocation list. Called on every request. */
  readonly revoked?: ((grant: Grant) => boolean | Promise<boolean>) | undefined
  /** Called with internal errors; the request is refused. */
  readonly onError?: ((error: unknown) => void) | undefined
  /** Called with the reason why a key set cannot be fetched or used, once until the reason changes. Without it, `onError` is. */
  readonly onUnusableKeySet?: ((url: string, reason: string) => void) | undefined
  readonly fetch?: Fetch | undefined
  readonly clock?: (() => number) | undefined
  readonly verify?: Verify | undefined
}

/** A caller with a valid token. */
export interface Caller extends Authenticated {
  readonly grant: Grant
  decide(interaction: Interaction, work?: Work): ReturnType<Authenticated['decide']>
  /** Like `decide`, with the full decision. */
  authorize(interaction: Interaction, work?: Work): Decision
}

type KnownCaller = Caller & { readonly revocationKeys: readonly string[] }

/** Authenticates the requests to one resource of a server. */
export interface AudienceAuthenticator extends Authenticator {
  authenticate(authorization: string | undefined): AuthFailure | Caller | Promise<AuthFailure | Caller>
}

export interface Interceptor extends AudienceAuthenticator {
  readonly policy: EnforcementPolicy
  /** Whether the key set of any issuer is in the cache. */
  ready(): boolean
  /** Fetches key sets and revocations, and keeps them fresh until `close`. Never fails: it retries unreachable servers. */
  start(): Promise<void>
  /**
   * Authenticates the requests to another resource of this server by the auth server's tokens for it (RFC 8707), which the
   * FHIR base does not accept. Its tokens are also refused while the auth server refuses the whole audience.
   */
  forAudience(audience: string): AudienceAuthenticator
  /** Forgets the tokens that were verified, with their access. Call it when the user filter has changed. */
  forget(): void
  close(): void
}

const OWN_ALGORITHMS: readonly Algorithm[] = ['RS256']
const TICK_MS = 500
// As often as the revocation list, so that a leaked key that was withdrawn is gone as soon.
const OWN_KEYS_MS = 1_500

/** Creates the interceptor, which authenticates and authorizes the requests to a FHIR server. */
export function createInterceptor(options: InterceptorOptions): Interceptor {
  const policy = readPolicy(options)
  const clock = options.clock ?? Date.now
  const { fhirBaseUrl } = policy
  const fetchKeys: Fetch = options.fetch ?? ((url, init) => fetch(url, init))
  const openKeySet = (url: string, algorithms: readonly Algorithm[], refreshMs?: number) =>
    createKeySet({
      url,
      algorithms,
      fetch: fetchKeys,
      clock,
      refreshMs,
      onRemoval: forget,
      onUnusable: reason => reportKeySet(url, reason),
    })
  const authUrl = options.authUrl === undefined ? undefined : removeTrailingSlash(options.authUrl)
  const revocations =
    authUrl === undefined
      ? undefined
      : createRevocations({ url: `${authUrl}/oauth2/revocations`, fetch: fetchKeys, clock })
  const describeOwn = (issuer: string, audience: string, keys: KeySet): Issuer<KnownCaller> => ({
    issuer,
    audiences: [audience],
    algorithms: OWN_ALGORITHMS,
    keys,
    readGrant: claims => readGrant(claims, fhirBaseUrl),
    createCaller: grant => ({
      ...createCaller(grant, policy, reportError),
      revocationKeys: computeRevocationKeys(grant.tokenId, audience),
    }),
  })
  const own =
    authUrl === undefined
      ? undefined
      : describeOwn(authUrl, fhirBaseUrl, openKeySet(`${authUrl}/oauth2/jwks`, OWN_ALGORITHMS, OWN_KEYS_MS))
  const others = (options.trustedIssuers ?? []).map(
    (trusted): Issuer<KnownCaller> => ({
      issuer: trusted.issuer,
      audiences: trusted.audiences?.map(removeTrailingSlash) ?? [fhirBaseUrl],
      types: trusted.types,
      algorithms: TRUSTED_ALGORITHMS,
      keys: openKeySet(trusted.jwksUrl, TRUSTED_ALGORITHMS),
      readGrant: claims => readTrustedGrant(claims, trusted, fhirBaseUrl),
      createCaller: grant => ({ ...createCaller(grant, policy, reportError), revocationKeys: [] }),
    }),
  )
  // No trusted issuer can replace our auth server.
  const [first, ...rest] = [...(own ? [own] : []), ...others.filter(it => it.issuer !== authUrl)]
  if (!first) throw new TypeError('Option authUrl: expected a URL, or trustedIssuers')
  const issuers = [first, ...rest] as const
  const verifiers: Verifier<KnownCaller>[] = []
  const keepFresh = () => Promise.all([...issuers.map(it => it.keys.keepFresh()), revocations?.keepFresh()])

  function reportKeySet(url: string, reason: string): void {
    if (options.onUnusableKeySet) options.onUnusableKeySet(url, reason)
    else options.onError?.(new Error(`Cannot use the key set ${url}: ${reason}`))
  }

  function reportError(error: unknown): Refusal {
    options.onError?.(error)
    return failFor('broken')
  }

  function checkRevoked(found: Verified<KnownCaller>): AuthFailure | Caller | Promise<AuthFailure | Caller> {
    if (isFailure(found)) return refuse(found)
    if (found.isExpired) return { ...refuse(failFor('expired-token')), rejectedGrant: found.caller.grant }
    const { caller } = found
    if (revocations?.isRevoked(caller.revocationKeys))
      return { ...refuse(REVOKED), rejectedGrant: caller.grant }
    return options.revoked ? checkRevokedByHost(caller, options.revoked) : caller
  }

  function forget(): void {
    for (const verifier of verifiers) verifier.forget()
  }

  function createAuthenticator(
    issuers: readonly [Issuer<KnownCaller>, ...Issuer<KnownCaller>[]],
  ): AudienceAuthenticator {
    const tokens = createVerifier<KnownCaller>({ issuers, clock, verify: options.verify })
    verifiers.push(tokens)
    return {
      authenticate(authorization) {
        try {
          const found = tokens.verify(authorization)
          const result = found instanceof Promise ? found.then(checkRevoked) : checkRevoked(found)
          return result instanceof Promise ? result.catch(error => refuse(reportError(error))) : result
        } catch (error) {
          return refuse(reportError(error))
        }
      },
    }
  }

  let timer: NodeJS.Timeout | undefined
  return {
    ...createAuthenticator(issuers),
    policy,
    forAudience(audience) {
      if (!own) throw new TypeError('Option authUrl: needed to accept tokens for another audience')
      return createAuthenticator([describeOwn(own.issuer, audience, own.keys)])
    },
    ready: () => issuers.some(it => it.keys.ready()),
    async start() {
      timer ??= setInterval(() => void keepFresh(), TICK_MS).unref()
      await keepFresh()
    },
    forget,
    close: () => clearInterval(timer),
  }
}

const REVOKED = failFor('token-revoked')

async function checkRevokedByHost(
  caller: Caller,
  revocations: NonNullable<InterceptorOptions['revoked']>,
): Promise<AuthFailure | Caller> {
  return (await revocations(caller.grant)) ? { ...refuse(REVOKED), rejectedGrant: caller.grant } : caller
}

function readPolicy(options: InterceptorOptions): EnforcementPolicy {
  const { fhirBaseUrl, contexts, searchPermission, userFilter, protectedTypes, operations } = options
  const { relationContexts, careTeamsGiveAccess } = options
  return {
    fhirBaseUrl: removeTrailingSlash(fhirBaseUrl),
    contexts: contexts ?? ['patient'],
    searchPermission: searchPermission ?? 'r',
    ...(userFilter && { userFilter }),
    ...(protectedTypes && { protectedTypes }),
    ...(relationContexts && { relationContexts }),
    ...(careTeamsGiveAccess && { careTeamsGiveAccess }),
    ...(operations && { operations }),
  }
}

function createCaller(
  grant: Grant,
  policy: EnforcementPolicy,
  reportError: (error: unknown) => Refusal,
): Caller {
  const access = computeAccess(grant, policy)
  const authorize = (interaction: Interaction, work = new Work()): Decision => {
    try {
      return decide(interaction, grant, policy, access, work)
    } catch (error) {
      return { allowed: false, refusal: reportError(error) }
    }
  }
  return {
    allowed: true,
    grant,
    authorize,
    decide(interaction, work) {
      const decision = authorize(interaction, work)
      if (!decision.allowed) return refuse(decision.refusal)
      const { access, by, chains, lacks } = decision
      return {
        allowed: true,
        access,
        chains,
        by: typeof by === 'string' ? by : by.text,
        ...(lacks && { lacks: lacks.map(it => listRequiredScopes(it)[0]) }),
      }
    },
  }
}

export interface HostOptions extends InterceptorOptions {
  /** The path of the FHIR base on this server, if it differs from that of `fhirBaseUrl` (behind a proxy). */
  readonly basePath?: string | undefined
  /**
   * The response of `.well-known/smart-configuration`: by default the auth server's document; a document of your own if
   * another issuer is used; `host` if the server has its own route.
   */
  readonly smartConfiguration?: object | 'host' | undefined
  /**
   * Returns the current content of a resource, or the last content of a deleted one. It is needed to check updates,
   * deletes, versions and histories under a limited grant; without it they are refused.
   */
  readonly stored?: ((type: string, id: string) => Promise<Resource | undefined>) | undefined
  /** Old versions are checked by their own content and, by default, also by the current content; not with `version`. */
  readonly versionAccess?: VersionAccess | undefined
  /**
   * The host applies `decision.access` itself, in its queries and writes (see `getAuthorization`). The interceptor then
   * checks only type and permission, and no responses.
   */
  readonly appliesAccess?: boolean | undefined
  /**
   * Called with the audit records of every request that was decided, allowed or refused, after its response was sent. A
   * Bundle has a record for each entry too. An error is reported to `onError`, once until a call succeeds.
   */
  readonly onDecision?: ((record: AuditRecord) => void) | undefined
  /** Takes the same records, and may have requests refused while it cannot: see `createTrailSender`. */
  readonly trail?: DecisionTrail | undefined
}

/** Where audit records go. */
export interface DecisionTrail {
  /** Takes a record, and returns at once. */
  send(record: AuditRecord): void
  /** While it is false, requests are refused with a 503. */
  hasRoom(): boolean
}
