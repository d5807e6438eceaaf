import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { findFaults } from '../../endpoint/index.ts'
import { GRANTED_SCOPE_CHARACTERS } from '../limits.ts'
import type { Tokens } from '../session.ts'

/** A part of URLs, in which `.` and `..` would name another resource. */
const FhirId = Type.String({ pattern: '^(?!\\.{1,2}$)[A-Za-z0-9.-]{1,64}$' })

const TokenResponse = Type.Object({
  access_token: Type.String({ minLength: 1 }),
  refresh_token: Type.Optional(Type.String({ minLength: 1 })),
  expires_in: Type.Optional(Type.Number({ minimum: 0 })),
  refresh_expires_in: Type.Optional(Type.Number({ minimum: 0 })),
  refresh_token_expires_in: Type.Optional(Type.Number({ minimum: 0 })),
  scope: Type.Optional(Type.String({ maxLength: GRANTED_SCOPE_CHARACTERS })),
  patient: Type.Optional(FhirId),
  encounter: Type.Optional(FhirId),
  need_patient_banner: Type.Optional(Type.Unknown()),
  launch_id: Type.Optional(Type.Unknown()),
  similar_name: Type.Optional(Type.Unknown()),
})

/** Read only from the token response (APP-4). */
export interface ReceivedGrant {
  readonly tokens: Tokens
  /** Undefined if it is the requested scope (RFC 6749, 5.1). */
  readonly scope: string | undefined
  readonly patientId: string | undefined
  readonly encounterId: string | undefined
  readonly needPatientBanner: boolean
  /** The id of the launch in the auth server's audit trail, if the auth server sends it. */
  readonly launchId: string | undefined
  /** Whether another patient has a similar name, if the auth server sends it. */
  readonly similarName: boolean
  readonly expiresInSeconds: number | undefined
  readonly refreshExpiresInSeconds: number | undefined
}

export function readTokenGrant(response: unknown): ReceivedGrant | undefined {
  if (!Value.Check(TokenResponse, response)) return undefined
  return {
    tokens: readTokens(response),
    scope: response.scope,
    patientId: response.patient,
    encounterId: response.encounter,
    // Only the literal `false` hides the banner: showing the patient's identity does no harm.
    needPatientBanner: response.need_patient_banner !== false,
    launchId: readLaunchId(response.launch_id),
    similarName: response.similar_name === true,
    expiresInSeconds: response.expires_in,
    refreshExpiresInSeconds: response.refresh_token_expires_in ?? response.refresh_expires_in,
  }
}

/** Names the invalid member and the expected format, never the value. */
export function describeTokenFault(response: unknown): string {
  const [fault] = findFaults(TokenResponse, response)
  return `token response ${fault?.name ?? ''}: ${fault?.text ?? 'not valid'}`
}

// Not a standard member: values in another format are ignored.
function readLaunchId(value: unknown): string | undefined {
  return typeof value === 'string' && /^[\w-]{1,64}$/.test(value) ? value : undefined
}

function readTokens({ access_token, refresh_token }: Static<typeof TokenResponse>): Tokens {
  return {
    accessToken: access_token,
    ...(refresh_token === undefined ? {} : { refreshToken: refresh_token }),
  }
}

const MAX_LEEWAY_MS = 10_000

interface TokenLifetime {
  readonly renewAt: number
  readonly renewableUntil: number | null
}

/**
 * Renewal starts a tenth of the lifetime, at most 10 s, before the end, so that a token does not expire in transit.
 * A token without a stated lifetime is used until the FHIR server rejects it.
 */
export function computeLifetime(grant: ReceivedGrant, now: number): TokenLifetime {
  const life = grant.expiresInSeconds === undefined ? undefined : grant.expiresInSeconds * 1000
  const renewAt = life === undefined ? LATEST : now + life - Math.min(life / 10, MAX_LEEWAY_MS)
  if (grant.tokens.refreshToken === undefined)
    return { renewAt: LATEST, renewableUntil: life === undefined ? null : clampInstant(now + life) }
  const renewableFor = grant.refreshExpiresInSeconds
  return {
    renewAt: clampInstant(renewAt),
    renewableUntil:
      renewableFor === undefined ? null : clampInstant(now + Math.max(renewableFor * 1000, life ?? 0)),
  }
}

const LATEST = Number.MAX_SAFE_INTEGER

/** An auth server may state any lifetime; a database column holds integers up to a limit. */
function clampInstant(milliseconds: number): number {
  return Math.min(Math.floor(milliseconds), LATEST)
}
