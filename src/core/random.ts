import { randomBytes } from 'node:crypto'

// One call of `randomBytes` costs more than what is done with a few bytes.
const POOL = 4096
let pool: Uint8Array = new Uint8Array()

/** A few random bytes, each for one use. */
export function takeRandomBytes(size: number): Uint8Array {
  if (pool.length < size) pool = randomBytes(Math.max(POOL, size))
  const taken = pool.subarray(0, size)
  pool = pool.subarray(size)
  return taken
}
