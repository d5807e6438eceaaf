import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { Schema } from './schema.ts'

/** A cell of the database that holds a sealed text. */
export interface SealedCell {
  readonly table: keyof Schema
  readonly column: `${string}_sealed`
  readonly row: string
}

/** A text is sealed for a cell of the database, or for a purpose outside of it, and can be opened for no other. */
export type SealedFor = SealedCell | string

/** Encrypts texts with `smart.server.secret`: secrets in the database, and state that a client carries. */
export interface Sealer {
  /** Encrypts a text. Sealing it twice gives two different results. */
  seal(text: string, sealedFor: SealedFor): string
  /** Decrypts a text. Throws unless it was sealed for the same cell or purpose, with the same secret. */
  open(sealed: string, sealedFor: SealedFor): string
  /** Like `open`, but returns undefined instead. */
  tryOpen(sealed: string, sealedFor: SealedFor): string | undefined
}

// An earlier version sealed cells like purposes (see reseal.ts).
const FORMAT = { cell: 'v2.', purpose: 'v1.' } as const
const IV_BYTES = 12
const TAG_BYTES = 16

/**
 * AES-256-GCM with one key per column or purpose (HKDF-SHA-256). The row is authenticated as additional data, so that a
 * sealed text cannot be moved to another row.
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
    seal: (text, sealedFor) => encrypt(text, deriveKey(describePurpose(sealedFor)), sealedFor),
    tryOpen,
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

function chooseFormat(sealedFor: SealedFor): string {
  return typeof sealedFor === 'string' ? FORMAT.purpose : FORMAT.cell
}

function encodeAdditionalData(sealedFor: SealedFor): Buffer {
  if (typeof sealedFor === 'string') return Buffer.alloc(0)
  return Buffer.from(JSON.stringify([sealedFor.table, sealedFor.column, sealedFor.row]))
}

function encrypt(text: string, key: Buffer, sealedFor: SealedFor): string {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(encodeAdditionalData(sealedFor))
  const content = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return chooseFormat(sealedFor) + content.toString('base64url')
}

function decrypt(sealed: string, key: Buffer, sealedFor: SealedFor): string | undefined {
  const format = chooseFormat(sealedFor)
  const encoded = sealed.slice(format.length)
  const content = Buffer.from(encoded, 'base64url')
  if (!sealed.startsWith(format) || content.length < IV_BYTES + TAG_BYTES) return undefined
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
  return new Error(
    `Cannot open sealed ${purpose}: it was changed, moved, or sealed with another SMART_SECRET`,
  )
}
