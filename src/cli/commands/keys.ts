import { HOW } from '../../core/index.ts'
import {
  type Arguments,
  type Command,
  type ExitCode,
  failMissing,
  failMisuse,
  getOptional,
  getSubject,
  type Io,
  isSet,
} from '../command.ts'
import { performCommand } from '../with-store.ts'

const keysWithdraw: Command = {
  usage: `
Usage: ${HOW} keys withdraw (--kid <kid> | --all)

Every server refuses tokens signed with the removed key within 5 seconds. New tokens are signed with a new key
at once. Requests may fail for a few seconds, until every server has fetched the new key. Apps then renew their tokens. If no
key leaked, use keys rotate.

Options:
  --kid <kid>  the key to remove
  --all        remove all keys, including the app server's, whatever SMART_SECRET encrypted them. Use this if SMART_SECRET
               leaked or was lost: stop the servers, set a new SMART_SECRET, run this command and audit verify --adopt,
               start the servers. It ends all sessions of the app server.`,
  positionals: { min: 0, max: 1 },
  async run(args, io) {
    if (isSet(args, 'all')) return withdrawAll(args, io)
    const { withdrawKey } = await import('../../auth/index.ts')
    if (args.positionals.length === 0 && getOptional(args, 'kid') === undefined)
      failMissing(args, '--kid or --all')
    const kid = getSubject(args, 'kid')
    await performCommand(io, 'Cannot withdraw key', async (admin, openSealer) =>
      withdrawKey(admin, openSealer(), kid),
    )
    io.stdout.write(`Withdrew key ${kid}. New tokens are signed with a new key.\n`)
    return 0
  },
}

async function withdrawAll(args: Arguments, io: Io): Promise<ExitCode> {
  if (args.positionals.length > 0 || getOptional(args, 'kid') !== undefined)
    throw failMisuse('Unexpected key: --all is already set')
  const { withdrawKeys } = await import('../../auth/index.ts')
  await performCommand(io, 'Cannot withdraw keys', async (admin, openSealer) =>
    withdrawKeys(admin, openSealer()),
  )
  io.stdout.write('Withdrew all keys. New tokens are signed with a new key.\n')
  return 0
}

export const commands = { 'keys withdraw': keysWithdraw }
