import { isIP } from 'node:net'
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import type { Kysely, Transaction } from 'kysely'
import { isRecord, parseJson } from '../../../core/index.ts'
import type { Schema } from '../../../store/index.ts'
import { LIFETIME } from '../../base/limits.ts'
import type { UsersContext } from '../context.ts'
import type { Factor } from './factors.ts'

/** This server as the relying party of passkeys (WebAuthn, 5.4.2). */
interface RelyingParty {
  /** The host name: passkeys work at no other. */
  readonly id: string
  readonly origin: string
}

/** Undefined where browsers have no passkeys: at an IP address, and over plain http except on localhost. */
export function findRelyingParty({
  issuerUrl,
}: Pick<UsersContext['settings'], 'issuerUrl'>): RelyingParty | undefined {
  const { hostname: id, origin, protocol } = new URL(issuerUrl)
  const isSecure = protocol === 'https:' || id === 'localhost' || id.endsWith('.localhost')
  return isSecure && isIP(id.replace(/^\[|\]$/g, '')) === 0 ? { id, origin } : undefined
}

/** Whether users may sign in with a passkey instead of a password. */
export function offersPasskeys({ settings, providers }: UsersContext): boolean {
  return providers.passwords && findRelyingParty(settings) !== undefined
}

/** COSE: Ed25519, ES256 and RS256, which all passkeys together support. */
const ALGORITHMS = [-8, -7, -257]

/** A request to the browser, as WebAuthn writes it in JSON. */
export interface PasskeyRequest {
  readonly kind: 'create' | 'get'
  readonly options: Readonly<Record<string, unknown>>
}

/** Asks for a new passkey. It verifies its user, so that it is two factors by itself. */
export function requestNewPasskey(
  party: RelyingParty,
  {
    challenge,
    user,
    siteName,
    factors,
  }: {
    readonly challenge: string
    readonly user: { readonly id: string; readonly username: string; readonly displayName: string }
    readonly siteName: string
    readonly factors: readonly Factor[]
  },
): PasskeyRequest {
  return {
    kind: 'create',
    options: {
      rp: { id: party.id, name: siteName },
      user: {
        id: Buffer.from(user.id).toString('base64url'),
        name: user.username,
        displayName: user.displayName,
      },
      challenge,
      pubKeyCredParams: ALGORITHMS.map(alg => ({ type: 'public-key', alg })),
      timeout: LIFETIME.interaction,
      excludeCredentials: listCredentials(factors),
      authenticatorSelection: { residentKey: 'preferred', userVerification: 'required' },
      attestation: 'none',
    },
  }
}

/** Asks for one of these passkeys, or for any that the user has for this server. */
export function requestPasskey(
  party: RelyingParty,
  challenge: string,
  factors: readonly Factor[] = [],
): PasskeyRequest {
  const allowCredentials = listCredentials(factors)
  return {
    kind: 'get',
    options: {
      rpId: party.id,
      challenge,
      timeout: LIFETIME.interaction,
      userVerification: 'required',
      allowCredentials,
    },
  }
}

function listCredentials(factors: readonly Factor[]) {
  return factors.flatMap(({ credential_id: id, transports }) =>
    id === null
      ? []
      : { type: 'public-key', id, ...(transports !== null && { transports: JSON.parse(transports) }) },
  )
}

/** A new passkey that was verified. */
export interface NewPasskey {
  readonly credentialId: string
  readonly publicKey: string
  readonly signCount: number
  readonly transports: readonly string[]
}

/** Undefined if the response is not one to this challenge, from this origin, with a verified user. */
export async function verifyNewPasskey(
  party: RelyingParty,
  challenge: string,
  text: string,
): Promise<NewPasskey | undefined> {
  // Loaded at the first use: most processes never need it.
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server')
  const response = parseResponse(text)
  if (!response) return undefined
  const result = await verifyRegistrationResponse({
    response: response as unknown as RegistrationResponseJSON,
    expectedChallenge: challenge,
    expectedOrigin: party.origin,
    expectedRPID: party.id,
    requireUserVerification: true,
    supportedAlgorithmIDs: ALGORITHMS,
  }).catch(() => undefined)
  if (!result?.verified) return undefined
  const { id, publicKey, counter, transports } = result.registrationInfo.credential
  return {
    credentialId: id,
    publicKey: Buffer.from(publicKey).toString('base64url'),
    signCount: counter,
    transports: transports ?? [],
  }
}

export async function addPasskey(
  trx: Transaction<Schema>,
  { userId, name, passkey, now }: { userId: string; name: string; passkey: NewPasskey; now: number },
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto('factor')
    .values({
      clinician_id: userId,
      kind: 'passkey',
      name,
      credential_id: passkey.credentialId,
      public_key: passkey.publicKey,
      sign_count: passkey.signCount,
      transports: JSON.stringify(passkey.transports),
      created_at: now,
      used_at: now,
    })
    .onConflict(conflict => conflict.column('credential_id').doNothing())
    .executeTakeFirst()
  return numInsertedOrUpdatedRows === 1n
}

/** A passkey that answered a challenge. */
export interface UsedPasskey {
  readonly factor: Factor
  readonly newCount: number
}

/** The id of the passkey that a response names. JSON may contain a NUL, which PostgreSQL does not accept. */
export function readCredentialId(text: string): string | undefined {
  const id = parseResponse(text)?.id
  return typeof id === 'string' && /^[\w-]+$/.test(id) ? id : undefined
}

/**
 * Undefined if the response is not one of these passkeys to this challenge, from this origin, with a verified user, or if its
 * counter went back: then somebody may have copied the passkey.
 */
export async function verifyPasskey(
  party: RelyingParty,
  challenge: string,
  factors: readonly Factor[],
  text: string,
): Promise<UsedPasskey | undefined> {
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server')
  const response = parseResponse(text)
  const factor = factors.find(({ credential_id: id }) => id !== null && id === response?.id)
  if (!response || !factor?.credential_id || factor.public_key === null) return undefined
  const result = await verifyAuthenticationResponse({
    response: response as unknown as AuthenticationResponseJSON,
    expectedChallenge: challenge,
    expectedOrigin: party.origin,
    expectedRPID: party.id,
    requireUserVerification: true,
    credential: {
      id: factor.credential_id,
      publicKey: new Uint8Array(Buffer.from(factor.public_key, 'base64url')),
      counter: Number(factor.sign_count ?? 0),
    },
  }).catch(() => undefined)
  return result?.verified ? { factor, newCount: result.authenticationInfo.newCounter } : undefined
}

/** Stores the new counter by compare-and-set: of two simultaneous uses with one counter, one is a copy. */
export async function consumePasskey(
  trx: Kysely<Schema>,
  { factor, newCount }: UsedPasskey,
  now: number,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('factor')
    .set({ sign_count: newCount, used_at: now })
    .where('id', '=', factor.id)
    .where('sign_count', '=', factor.sign_count ?? 0)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

function parseResponse(text: string): Readonly<Record<string, unknown>> | undefined {
  const value = parseJson(text)
  return isRecord(value) ? value : undefined
}
