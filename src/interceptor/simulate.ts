import { createOutcome, type IssueCode } from '../fhir/index.ts'
import { decodeJwt } from '../jwt/index.ts'
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
  return { name, caller: { ...caller, grant: { ...grant, note: `Simulated by the lab: ${name}` } } }
}

function readName(authorization = ''): unknown {
  return decodeJwt(authorization.replace(/^bearer +/i, ''))?.claims.simulate
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
    ...(grant && { rejectedGrant: grant }),
  }
}

/** Marks the refusal of a token that was issued unusable. Nobody vouches for its claims, so they change only the reason. */
function markFailure(failure: AuthFailure, authorization: string | undefined): AuthFailure {
  const name = readName(authorization)
  return name === 'access-token:expired' || name === 'access-token:bad-signature'
    ? { ...failure, why: `simulated by the lab: ${name}` }
    : failure
}
