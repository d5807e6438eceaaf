import { HOW } from '../../core/index.ts'
import {
  type Command,
  CommandFailure,
  formatColumns,
  formatTime,
  getOptional,
  getSubject,
  isSet,
  printJson,
} from '../command.ts'
import { performCommand } from '../with-store.ts'

const signInList: Command = {
  usage: `
Usage: ${HOW} sign-in list [--user <who>] [--json]

Prints the browsers in which users are signed in now. Those that end latest come first.

Options:
  --user <who>   only sign-ins of this user: a username, a name, the id of an account or a FHIR user (Practitioner/1)
  --json         print JSON, as the administration API returns it

To end one: sign-in end <id>`,
  async run(args, io) {
    const { describeUserSignIn, findAccountIds, listAll, listSignIns } = await import('../../auth/index.ts')
    const user = getOptional(args, 'user')
    const signIns = await performCommand(io, 'Cannot list sign-ins', async admin => {
      const userIds = user === undefined ? undefined : await findAccountIds(admin.store, user)
      if (userIds?.length === 0) throw new CommandFailure(`Cannot list sign-ins: there is no user ${user}`)
      return listAll(page => listSignIns(admin, { ...page, userIds }))
    })
    if (isSet(args, 'json')) {
      printJson(io, { items: signIns.map(describeUserSignIn) })
      return 0
    }
    const rows = signIns.map(one => [
      one.id,
      one.username,
      formatTime(one.createdAt),
      formatTime(one.lastUsedAt),
      one.address ?? '-',
      one.browser ?? '-',
    ])
    if (rows.length === 0) io.stderr.write('Nobody is signed in.\n')
    else
      io.stdout.write(
        `${formatColumns([['ID', 'USER', 'SIGNED IN', 'LAST USED', 'ADDRESS', 'BROWSER'], ...rows])}\n`,
      )
    return 0
  },
}

const signInEnd: Command = {
  usage: `
Usage: ${HOW} sign-in end --id <id>

The user is signed out in this browser. Apps that were launched in it lose their access, except with offline_access.`,
  positionals: { min: 0, max: 1 },
  async run(args, io) {
    const id = getSubject(args, 'id')
    const { endSignInById } = await import('../../auth/index.ts')
    const { username } = await performCommand(io, 'Cannot end sign-in', admin => endSignInById(admin, id))
    io.stdout.write(`Ended the sign-in of ${username}\n`)
    return 0
  },
}

export const commands = { 'sign-in list': signInList, 'sign-in end': signInEnd }
