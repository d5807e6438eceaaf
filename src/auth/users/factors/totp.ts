import { createHmac, randomBytes } from 'node:crypto'
import { isSameText } from '../../../store/index.ts'

/** RFC 6238 with the values that every authenticator app supports: SHA-1, 6 digits, 30 seconds. */
const STEP_MS = 30_000
const DIGITS = 6
/** As long as a SHA-1 (RFC 4226, 4, R6). */
const SECRET_BYTES = 20
/** The clocks of the phone and of this server may differ (RFC 6238, 5.2). */
const STEPS_APART = [0, -1, 1]

/** The key of an authenticator app, as base32. */
export function createTotpSecret(): string {
  return encodeBase32(randomBytes(SECRET_BYTES))
}

/** The code of a step of 30 seconds (RFC 4226, 5.3). */
export function computeTotpCode(secret: string, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const digest = createHmac('sha1', decodeBase32(secret)).update(counter).digest()
  const offset = (digest.at(-1) ?? 0) & 15
  const number = digest.readUInt32BE(offset) & 0x7fff_ffff
  return String(number % 10 ** DIGITS).padStart(DIGITS, '0')
}

export function isTotpCode(text: string): boolean {
  return /^\d{6}$/.test(text)
}

/** The step whose code this is. Undefined if it is wrong, or not later than the last one that was accepted. */
export function findTotpStep(
  secret: string,
  code: string,
  { now, lastStep }: { readonly now: number; readonly lastStep: number | null },
): number | undefined {
  const current = Math.floor(now / STEP_MS)
  return STEPS_APART.map(apart => current + apart).find(
    step => step > (lastStep ?? -1) && isSameText(computeTotpCode(secret, step), code),
  )
}

/** The content of the QR code (the Key URI Format of Google Authenticator). */
export function buildTotpUri(secret: string, issuer: string, username: string): string {
  const label = [issuer, username].map(encodeURIComponent).join(':')
  return `otpauth://totp/${label}?secret=${secret}&issuer=${encodeURIComponent(issuer)}`
}

/** RFC 4648, 6. */
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Without padding. The number of bits must be a multiple of 5. */
export function encodeBase32(bytes: Buffer): string {
  const bits = [...bytes].map(byte => byte.toString(2).padStart(8, '0')).join('')
  return (bits.match(/.{5}/g) ?? []).map(five => BASE32[Number.parseInt(five, 2)]).join('')
}

function decodeBase32(text: string): Buffer {
  const bits = [...text].map(sign => BASE32.indexOf(sign).toString(2).padStart(5, '0')).join('')
  return Buffer.from((bits.match(/.{8}/g) ?? []).map(byte => Number.parseInt(byte, 2)))
}
