import { randomBytes } from 'node:crypto'

const SAFE = /^[A-Za-z0-9][A-Za-z0-9._:-]{3,63}$/

/** Crockford's base 32: no letter can be mistaken for a digit when the reference is read out on the phone. */
const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** Creates a request id such as `7F3K-92QD-0XTB`, which is also the reference on an error page. */
export function createRequestId(random: (size: number) => Uint8Array = takePooledBytes): string {
  const bytes = random(12)
  let id = ''
  for (let at = 0; at < 12; at++) {
    if (at === 4 || at === 8) id += '-'
    id += LETTERS[(bytes[at] ?? 0) % 32]
  }
  return id
}

// One call of `randomBytes` for many ids: it costs more than the rest of `createRequestId`.
const POOL = 4096
let pool: Uint8Array = new Uint8Array()

function takePooledBytes(size: number): Uint8Array {
  if (pool.length < size) pool = randomBytes(POOL)
  const taken = pool.subarray(0, size)
  pool = pool.subarray(size)
  return taken
}

/** Returns the caller's id if it is short and safe to log and to echo, else a new one. */
export function readRequestId(header: string | readonly string[] | undefined): string {
  return typeof header === 'string' && SAFE.test(header) ? header : createRequestId()
}
