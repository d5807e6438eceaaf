import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

/** SHA-256 as base64url: the only form in which a token, code or secret of ours is stored. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

/** 32 random bytes as base64url, 43 characters (LAUNCH-5). */
export function createRandomToken(): string {
  return randomBytes(32).toString('base64url')
}

/** Whether two texts are equal, in a time that tells nothing about where they differ, nor how long either is. */
export function isSameText(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}
