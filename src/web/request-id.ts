import { randomBytes } from 'node:crypto'

const SAFE = /^[A-Za-z0-9][A-Za-z0-9._:-]{3,63}$/

/** Crockford's base 32: no letter that is taken for a digit when the reference is read out on the phone. */
const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** A new request id such as `7F3K-92QD-0XTB`. It is also the reference on an error page. */
export function newRequestId(random: (size: number) => Uint8Array = randomBytes): string {
  const letters = Array.from(random(12), byte => LETTERS[byte % 32]).join('')
  return letters.replace(/(.{4})(?=.)/g, '$1-')
}

/** The caller's own id when it is short and safe to log and to echo, else a new one. */
export function requestIdFrom(header: string | readonly string[] | undefined): string {
  return typeof header === 'string' && SAFE.test(header) ? header : newRequestId()
}
