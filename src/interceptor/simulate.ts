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
export function simulateFailures(guard: Authenticator): Authenticator {
  return {
    authenticate(authorization) {
      const result = guard.authenticate(authorization)
      const apply = (caller: AuthFailure | Authenticated) =>
        caller.allowed ? simulate(caller) : markFailure(caller, authorization)
      return result instanceof Promise ? result.then(apply) : apply(result)
    },
  }
}

function simulate(caller: Authenticated): AuthFailure | Authenticated | Promise<Authenticated> {
  const name = caller.grant?.simulate
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
    ...{ allowed: false, status, headers, outcome: createOutcome(code, `Simulated by the lab: ${name}.`) },
    ...(grant && { rejectedGrant: grant }),
  }
}

/** Marks the refusal of a token that was issued unusable. Nobody vouches for its claims, so they change only the reason. */
function markFailure(failure: AuthFailure, authorization = ''): AuthFailure {
  const name = decodeJwt(authorization.replace(/^bearer +/i, ''))?.claims.simulate
  return name === 'access-token:expired' || name === 'access-token:bad-signature'
    ? { ...failure, why: `simulated by the lab: ${name}` }
    : failure
}
