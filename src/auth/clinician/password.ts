import { compare, hash } from '@node-rs/bcrypt'

const COST = 10

/** Bcrypt looks at the first 72 bytes only; longer passwords would be cut in silence. */
const MAX_BYTES = 72

/** Of a password that nobody knows: comparing with it costs a wrong username as much time as a wrong password. */
const NOBODY = '$2b$10$MwlpsZqe92ktww76iZQ0d.aZhHfuoV1EWpsRUtmjibVcLjkHBJcZ6'

const BCRYPT = /^\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}$/

export function hashPassword(password: string): Promise<string> {
  return hash(password, COST)
}

/** Whether the password is that of the hash (`$2a$`, `$2b$`, `$2y$`). Takes its time even when there is no hash. */
export async function isPasswordOf(passwordHash: string | undefined, password: string): Promise<boolean> {
  const usable = passwordHash !== undefined && BCRYPT.test(passwordHash)
  const matches = await compare(password, usable ? passwordHash : NOBODY)
  return usable && matches && Buffer.byteLength(password) <= MAX_BYTES
}
