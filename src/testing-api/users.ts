import type { User, Users } from './types.ts'

/** The logins that the start prints: `Test login  clinician / sallyport`. It prints only those that work. */
export function readUsers(banner: string, password: string | undefined): Users {
  const logins = banner.matchAll(/^ +(\w+) login +([^\s,]+)(?: \/ (\S+))?/gm)
  return Object.fromEntries(
    [...logins].flatMap(([, kind = '', username = '', printed = password]): [string, User][] => {
      if (printed === undefined) return []
      return [[kind === 'Test' ? 'clinician' : kind.toLowerCase(), { username, password: printed }]]
    }),
  )
}
