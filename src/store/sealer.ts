import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hash,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import { takeRandomBytes } from '../core/index.ts'
import type { Schema } from './schema.ts'

/** The only form in which our tokens, codes and secrets are stored. */
export function sha256(text: string): string {
  return hash('sha256', text, 'base64url')
}

/** 32 random bytes as base64url, 43 characters (LAUNCH-5). */
export function createRandomToken(): string {
  return randomBytes(32).toString('base64url')
}

/** Compares in constant time, which reveals neither the position of a difference nor a length. */
export function isSameText(a: string, b: string): boolean {
  const digest = (text: string) => hash('sha256', text, 'buffer')
  return timingSafeEqual(digest(a), digest(b))
}

interface SealedCell {
  readonly table: keyof Schema
  readonly column: `${string}_sealed`
  readonly row: string
}

/** A text is encrypted for a cell of the database, or for a purpose outside it, and can be decrypted for no other. */
export type SealedFor = SealedCell | string

export interface Sealer {
  /** Sealing a text twice gives two different results. */
  seal(text: string, sealedFor: SealedFor): string
  /** Sealing a text twice gives the same result. */
  sealSame(text: string, purpose: string): string
  /** Throws unless the text was sealed for the same cell or purpose, with the same secret. */
  open(sealed: string, sealedFor: SealedFor): string
  tryOpen(sealed: string, sealedFor: SealedFor): string | undefined
  /** A secret of 43 characters for a purpose, always the same. */
  derive(purpose: string): string
}

/** The beginning of a sealed text. */
const FORMAT = 'v1.'
const IV_BYTES = 12
const TAG_BYTES = 16

/**
 * AES-256-GCM with one key per column or purpose (HKDF-SHA-256). The row is additional authenticated data, so that
 * a sealed text cannot be moved to another row.
 */
export function createSealer(secret: string): Sealer {
  const keys = new Map<string, Buffer>()
  const deriveKey = (purpose: string): Buffer => {
    const key = keys.get(purpose) ?? Buffer.from(hkdfSync('sha256', secret, 'sallyport', purpose, 32))
    keys.set(purpose, key)
    return key
  }
  const tryOpen = (sealed: string, sealedFor: SealedFor) =>
    decrypt(sealed, deriveKey(describePurpose(sealedFor)), sealedFor)
  return {
    seal: (text, sealedFor) =>
      encrypt(text, deriveKey(describePurpose(sealedFor)), sealedFor, takeRandomBytes(IV_BYTES)),
    sealSame: (text, purpose) =>
      encrypt(text, deriveKey(purpose), purpose, deriveNonce(text, deriveKey(`nonce ${purpose}`))),
    tryOpen,
    derive: purpose => deriveKey(`derived ${purpose}`).toString('base64url'),
    open(sealed, sealedFor) {
      const text = tryOpen(sealed, sealedFor)
      if (text === undefined) throw makeOpenError(sealedFor)
      return text
    },
  }
}

function describePurpose(sealedFor: SealedFor): string {
  return typeof sealedFor === 'string' ? sealedFor : `${sealedFor.table}.${sealedFor.column}`
}

function encodeAdditionalData(sealedFor: SealedFor): Buffer {
  if (typeof sealedFor === 'string') return Buffer.alloc(0)
  return Buffer.from(JSON.stringify([sealedFor.table, sealedFor.column, sealedFor.row]))
}

/** The nonce of a text that is sealed in the same way each time: two texts have different ones (as in AES-GCM-SIV, RFC 8452). */
function deriveNonce(text: string, key: Buffer): Buffer {
  return createHmac('sha256', key).update(text).digest().subarray(0, IV_BYTES)
}

function encrypt(text: string, key: Buffer, sealedFor: SealedFor, iv: Uint8Array): string {
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(encodeAdditionalData(sealedFor))
  const content = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return FORMAT + content.toString('base64url')
}

function decrypt(sealed: string, key: Buffer, sealedFor: SealedFor): string | undefined {
  const encoded = sealed.slice(FORMAT.length)
  const content = Buffer.from(encoded, 'base64url')
  if (!sealed.startsWith(FORMAT) || content.length < IV_BYTES + TAG_BYTES) return undefined
  // Node ignores characters that are not base64url.
  if (content.toString('base64url') !== encoded) return undefined
  const decipher = createDecipheriv('aes-256-gcm', key, content.subarray(0, IV_BYTES))
  decipher.setAAD(encodeAdditionalData(sealedFor)).setAuthTag(content.subarray(-TAG_BYTES))
  try {
    const text = decipher.update(content.subarray(IV_BYTES, -TAG_BYTES))
    return Buffer.concat([text, decipher.final()]).toString('utf8')
  } catch {
    return undefined
  }
}

function makeOpenError(sealedFor: SealedFor): Error {
  const purpose = describePurpose(sealedFor)
  return new Error(`Cannot decrypt ${purpose}: it was changed, moved, or encrypted with another SMART_SECRET`)
}
