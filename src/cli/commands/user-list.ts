import type { UserDescription } from '../../auth/index.ts'
import { findOwn, HOW } from '../../core/index.ts'
import {
  type Command,
  failMisuse,
  formatColumns,
  formatTime,
  getOptional,
  isSet,
  printJson,
} from '../command.ts'
import { performCommand } from '../with-store.ts'

/** The list of one kind of users, as on the page of users. */
export function defineUserList(kind: UserDescription['kind']): Command {
  return {
    usage: `
Usage: ${HOW} ${kind} list [--state <list>] [--search <text>] [--json]

Options:
  --state <list>   only a list of /admin/clinicians: administrators, auditors, without-second-factor, locked, unused (for 90
                   days), never (signed in) or disabled
  --search <text>  only users whose username or display name contains this text
  --json           print JSON, as the administration API returns it

Loopback only: a sample account, or one that a sample account created. It is disabled when the server gets a public URL, unless
you set a new password for it.`,
    async listValues() {
      const { USER_LISTS } = await import('../../auth/index.ts')
      return { state: Object.keys(USER_LISTS) }
    },
    async run(args, io) {
      const { describeAnyUser, listAll, listStateWords, listUsers, USER_LISTS } = await import(
        '../../auth/index.ts'
      )
      const state = getOptional(args, 'state') ?? 'all'
      const list = findOwn(USER_LISTS, state)
      if (!list) throw failMisuse(`Cannot use --state: expected one of ${Object.keys(USER_LISTS).join(', ')}`)
      const filter = { ...list, kind, text: getOptional(args, 'search') }
      const users = await performCommand(io, `Cannot list ${kind}s`, admin =>
        listAll(page => listUsers(admin, { ...filter, ...page })),
      )
      if (isSet(args, 'json')) {
        printJson(io, { items: users.map(describeAnyUser) })
        return 0
      }
      const rows = users.map(user => [
        user.username,
        user.displayName,
        user.fhirUser,
        listStateWords(user)
          .map(({ text }) => text.toLowerCase())
          .join(', '),
        user.secondFactors === 0 ? 'none' : String(user.secondFactors),
        formatLastSignIn(user),
        user.id,
      ])
      io.stdout.write(`${formatColumns([HEADS, ...rows])}\n`)
      return 0
    },
  }
}

const HEADS = ['USERNAME', 'DISPLAY NAME', 'FHIR USER', 'STATE', 'SECOND FACTORS', 'LAST SIGN-IN', 'ID']

/** Accounts that are older than the record of sign-ins may have been used before. */
function formatLastSignIn({ signedInAt, createdAt }: UserDescription): string {
  if (signedInAt !== undefined) return formatTime(signedInAt)
  return createdAt === undefined ? 'not known' : 'never'
}
