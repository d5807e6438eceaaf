import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { Schema } from './schema.ts'

/** A column of a row that holds a sealed text. */
export interface SealedCell {
  readonly table: keyof Schema
  readonly column: `${string}_sealed`
  readonly row: string
}

/** What a text is sealed for: a cell of the database, or a purpose outside of it. It opens for nothing else. */
export type SealedFor = SealedCell | string

/** Encrypts what must be kept but never be readable in the database (contract 3, `smart.server.secret`). */
export interface Sealer {
  /** The encrypted text; sealing it twice gives two different texts. */
  seal(text: string, sealedFor: SealedFor): string
  /** The text that was sealed for the same with the same secret. Throws when it was not. */
  open(sealed: string, sealedFor: SealedFor): string
  /** The same, or undefined when it was not. */
  tryOpen(sealed: string, sealedFor: SealedFor): string | undefined
}

/** Of a cell, and of a purpose. An earlier version sealed cells for a purpose as well. */
const FORMAT = { cell: 'v2.', purpose: 'v1.' } as const
const IV_BYTES = 12
const TAG_BYTES = 16

/**
 * AES-256-GCM with a key for each column or purpose (HKDF-SHA-256). The row is authenticated (additional data), so that
 * who can write to the database cannot move a sealed text to another row.
 */
export function sealer(secret: string): Sealer {
  const keys = new Map<string, Buffer>()
  const keyFor = (purpose: string): Buffer => {
    const key = keys.get(purpose) ?? Buffer.from(hkdfSync('sha256', secret, 'sallyport', purpose, 32))
    keys.set(purpose, key)
    return key
  }
  const tryOpen = (sealed: string, sealedFor: SealedFor) =>
    decrypt(sealed, keyFor(nameOf(sealedFor)), sealedFor)
  return {
    seal: (text, sealedFor) => encrypt(text, keyFor(nameOf(sealedFor)), sealedFor),
    tryOpen,
    open(sealed, sealedFor) {
      const text = tryOpen(sealed, sealedFor)
      if (text === undefined) throw cannotOpen(sealedFor)
      return text
    },
  }
}

function nameOf(sealedFor: SealedFor): string {
  return typeof sealedFor === 'string' ? sealedFor : `${sealedFor.table}.${sealedFor.column}`
}

function formatOf(sealedFor: SealedFor): string {
  return typeof sealedFor === 'string' ? FORMAT.purpose : FORMAT.cell
}

function additionalData(sealedFor: SealedFor): Buffer {
  if (typeof sealedFor === 'string') return Buffer.alloc(0)
  return Buffer.from(JSON.stringify([sealedFor.table, sealedFor.column, sealedFor.row]))
}

function encrypt(text: string, key: Buffer, sealedFor: SealedFor): string {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(additionalData(sealedFor))
  const content = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return formatOf(sealedFor) + content.toString('base64url')
}

function decrypt(sealed: string, key: Buffer, sealedFor: SealedFor): string | undefined {
  const format = formatOf(sealedFor)
  const content = Buffer.from(sealed.slice(format.length), 'base64url')
  if (!sealed.startsWith(format) || content.length < IV_BYTES + TAG_BYTES) return undefined
  const decipher = createDecipheriv('aes-256-gcm', key, content.subarray(0, IV_BYTES))
  decipher.setAAD(additionalData(sealedFor)).setAuthTag(content.subarray(-TAG_BYTES))
  try {
    const text = decipher.update(content.subarray(IV_BYTES, -TAG_BYTES))
    return Buffer.concat([text, decipher.final()]).toString('utf8')
  } catch {
    return undefined
  }
}

function cannotOpen(sealedFor: SealedFor): Error {
  const what = nameOf(sealedFor)
  return new Error(`Cannot open sealed ${what}: it was changed, moved, or sealed with another SMART_SECRET`)
}
