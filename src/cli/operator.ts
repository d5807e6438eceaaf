import { hostname, userInfo } from 'node:os'
import type { Io } from './command.ts'

/** Who runs a command, for the audit trail: the user of the operating system and the host, `alice@ward-3`. */
export function findOperator({ env }: Pick<Io, 'env'>): string {
  return `${findUser(env)}@${hostname()}`
}

function findUser(env: Io['env']): string {
  const { uid, username } = readUser()
  // Only root is believed, who could be anybody: any other user may set the variable.
  return uid === 0 && env.SUDO_USER ? `${env.SUDO_USER} as ${username}` : username
}

/** A container may run as a number that has no name. */
function readUser(): { readonly uid: number | undefined; readonly username: string } {
  const uid = process.getuid?.()
  try {
    return { uid, username: userInfo().username }
  } catch {
    return { uid, username: `uid ${uid}` }
  }
}
