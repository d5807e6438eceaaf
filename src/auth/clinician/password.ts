import { compare, hash } from '@node-rs/bcrypt'

/** The cost of the hashes that we make. */
export const PASSWORD_COST = 10

/** Bcrypt looks at the first 72 bytes only; longer passwords would be cut in silence. */
const MAX_BYTES = 72

/** Of a password that nobody knows. Its digest fits any cost: no password is known that has it. */
const NOBODY = '$MwlpsZqe92ktww76iZQ0d.aZhHfuoV1EWpsRUtmjibVcLjkHBJcZ6'

const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/

export function hashPassword(password: string, cost = PASSWORD_COST): Promise<string> {
  return hash(password, cost)
}

/** The cost of a hash (`$2a$`, `$2b$`, `$2y$`), or undefined when it is none. */
export function costOf(passwordHash: string | undefined): number | undefined {
  const cost = BCRYPT.exec(passwordHash ?? '')?.[1]
  return cost === undefined ? undefined : Number(cost)
}

/**
 * Whether the password is that of the hash. A refusal takes as long as a hash of `cost` does, also where the hash is
 * cheaper or there is none: each step of the cost doubles the work, so that the steps from the hash's own cost up to the
 * one before `cost` make up the rest.
 */
export async function isPasswordOf(
  passwordHash: string | undefined,
  password: string,
  cost = PASSWORD_COST,
): Promise<boolean> {
  const own = costOf(passwordHash)
  if (passwordHash === undefined || own === undefined) {
    await compare(password, `$2b$${String(cost).padStart(2, '0')}${NOBODY}`)
    return false
  }
  const matches = await compare(password, passwordHash)
  if (matches && Buffer.byteLength(password) <= MAX_BYTES) return true
  for (let step = own; step < cost; step++)
    await compare(password, `$2b$${String(step).padStart(2, '0')}${NOBODY}`)
  return false
}
