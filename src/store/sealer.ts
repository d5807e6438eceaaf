import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/** Encrypts what must be kept but never be readable in the database (contract 3, `smart.server.secret`). */
export interface Sealer {
  /** The text, encrypted for one purpose; sealing it twice gives two different texts. */
  seal(text: string, purpose: string): string
  /** The text that was sealed for the same purpose with the same secret. Throws when it was not. */
  open(sealed: string, purpose: string): string
}

const FORMAT = 'v1.'
const IV_BYTES = 12
const TAG_BYTES = 16

/** AES-256-GCM with a key for each purpose (HKDF-SHA-256), so that a sealed text is of no use in another column. */
export function sealer(secret: string): Sealer {
  const keys = new Map<string, Buffer>()
  const keyFor = (purpose: string): Buffer => {
    const key = keys.get(purpose) ?? Buffer.from(hkdfSync('sha256', secret, 'sallyport', purpose, 32))
    keys.set(purpose, key)
    return key
  }
  return {
    seal: (text, purpose) => encrypt(text, keyFor(purpose)),
    open: (sealed, purpose) => decrypt(sealed, keyFor(purpose), purpose),
  }
}

function encrypt(text: string, key: Buffer): string {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, iv)
  const content = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return FORMAT + content.toString('base64url')
}

function decrypt(sealed: string, key: Buffer, purpose: string): string {
  const content = Buffer.from(sealed.slice(FORMAT.length), 'base64url')
  if (!sealed.startsWith(FORMAT) || content.length < IV_BYTES + TAG_BYTES) throw cannotOpen(purpose)
  const decipher = createDecipheriv('aes-256-gcm', key, content.subarray(0, IV_BYTES))
  decipher.setAuthTag(content.subarray(-TAG_BYTES))
  try {
    const text = decipher.update(content.subarray(IV_BYTES, -TAG_BYTES))
    return Buffer.concat([text, decipher.final()]).toString('utf8')
  } catch {
    throw cannotOpen(purpose)
  }
}

function cannotOpen(purpose: string): Error {
  return new Error(`Cannot open sealed ${purpose}: it was changed, or sealed with another SMART_SECRET`)
}
