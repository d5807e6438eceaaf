import { createOutcome, type IssueCode } from '../fhir/index.ts'
import { type Claims, decodeJwt } from '../jwt/index.ts'
import type { Authenticated, Authenticator, AuthFailure } from '../smart/index.ts'

const SLOW_MS = 5_000

interface Failure {
  readonly status: number
  readonly code: IssueCode
  readonly headers?: Readonly<Record<string, string>>
}

const FAILURES: Readonly<Record<string, Failure>> = {
  'fhir:401': { status: 401, code: 'login', headers: { 'www-authenticate': 'Bearer error="invalid_token"' } },
  'fhir:403': { status: 403, code: 'forbidden' },
  'fhir:429': { status: 429, code: 'throttled', headers: { 'retry-after': '2' } },
  'fhir:500': { status: 500, code: 'exception' },
}

/** Simulates the failures that tokens of lab launches name (LAB-6). Use it only if the lab is on. */
export function applyTokenFailures(guard: Authenticator): Authenticator {
  return {
    authenticate(authorization) {
      const result = guard.authenticate(authorization)
      const apply = (caller: AuthFailure | Authenticated) =>
        caller.allowed ? simulate(caller, authorization) : markFailure(caller, authorization)
      return result instanceof Promise ? result.then(apply) : apply(result)
    },
  }
}

interface Simulated {
  /** Undefined for a token that names none. */
  readonly name: string | undefined
  /** The caller, with a note in the audit trail. */
  readonly caller: Authenticated
}

/** The interceptor returns the same caller for each request with a token. */
const known = new WeakMap<Authenticated, Simulated>()

/** Only the claims of our own auth server count. */
function readSimulated(caller: Authenticated, authorization: string | undefined): Simulated {
  const { grant } = caller
  const name = readName(authorization)
  if (typeof name !== 'string' || !grant || grant.issuer !== undefined) return { name: undefined, caller }
  return {
    name,
    caller: { ...caller, grant: { ...grant, note: `Simulated by the lab: ${name}`, mark: name } },
  }
}

function readName(authorization: string | undefined): unknown {
  return readClaims(authorization).simulate
}

function readClaims(authorization = ''): Claims {
  return decodeJwt(authorization.replace(/^bearer +/i, ''))?.claims ?? {}
}

function simulate(
  verified: Authenticated,
  authorization: string | undefined,
): AuthFailure | Authenticated | Promise<Authenticated> {
  const simulated = known.get(verified) ?? readSimulated(verified, authorization)
  known.set(verified, simulated)
  const { name, caller } = simulated
  if (name === undefined) return caller
  if (name === 'fhir:slow') return new Promise(resolve => setTimeout(resolve, SLOW_MS, caller))
  const failure = Object.hasOwn(FAILURES, name) ? FAILURES[name] : undefined
  return failure ? makeFailure(failure, name, caller) : caller
}

function makeFailure(
  { status, code, headers = {} }: Failure,
  name: string,
  { grant }: Authenticated,
): AuthFailure {
  return {
    allowed: false,
    status,
    headers,
    outcome: createOutcome(code, `Simulated by the lab: ${name}.`),
    reason: 'simulated',
    facts: { simulation: name },
    ...(grant && { rejectedGrant: grant }),
  }
}

/** Notes where a refused token seems to come from. Nobody vouches for its claims, so they change only the audit record. */
function markFailure(failure: AuthFailure, authorization: string | undefined): AuthFailure {
  const claims = readClaims(authorization)
  const { simulate: name } = claims
  const isSimulated = name === 'access-token:expired' || name === 'access-token:bad-signature'
  const claimed = Object.fromEntries(CLAIMED.flatMap(claim => selectPlain(claim, claims[claim])))
  const isKnown = failure.rejectedGrant !== undefined || Object.keys(claimed).length === 0
  return {
    ...failure,
    ...(isSimulated && {
      why: `The token is not accepted: simulated by the lab: ${name}`,
      reason: 'simulated',
      facts: { simulation: name },
    }),
    ...(!isKnown && { claimed }),
  }
}

const CLAIMED = ['iss', 'aud', 'client_id', 'jti'] as const

/** Anybody can send any claims: only short values of the characters of ids and URLs are recorded. */
function selectPlain(claim: string, value: unknown): readonly (readonly [string, string])[] {
  return typeof value === 'string' && /^[\w.~:/-]{1,200}$/.test(value) ? [[claim, value]] : []
}
