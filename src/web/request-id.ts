import { randomBytes } from 'node:crypto'

const SAFE = /^[A-Za-z0-9][A-Za-z0-9._:-]{3,63}$/

/** Crockford's base 32: no letter that is taken for a digit when the reference is read out on the phone. */
const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** A new request id such as `7F3K-92QD-0XTB`. It is also the reference on an error page. */
export function createRequestId(random: (size: number) => Uint8Array = pooledBytes): string {
  const bytes = random(12)
  let id = ''
  for (let at = 0; at < 12; at++) {
    if (at === 4 || at === 8) id += '-'
    id += LETTERS[(bytes[at] ?? 0) % 32]
  }
  return id
}

// Asked for in one go: a call for each id costs more than all else that is done to make it.
const POOL = 4096
let pool: Uint8Array = new Uint8Array()

function pooledBytes(size: number): Uint8Array {
  if (pool.length < size) pool = randomBytes(POOL)
  const taken = pool.subarray(0, size)
  pool = pool.subarray(size)
  return taken
}

/** The caller's own id when it is short and safe to log and to echo, else a new one. */
export function readRequestId(header: string | readonly string[] | undefined): string {
  return typeof header === 'string' && SAFE.test(header) ? header : createRequestId()
}
