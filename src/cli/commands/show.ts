import { SHOW_COMMANDS } from '../../auth/index.ts'
import { HOW } from '../../core/index.ts'
import { type Command, formatColumns, getSubject, isSet, printJson } from '../command.ts'
import { performCommand } from '../with-store.ts'

/** The commands that print one row of the lists of administration. */
export const commands = Object.fromEntries(SHOW_COMMANDS.map(show => [show.name, defineShow(show)]))

function defineShow({ name, noun, option, read }: (typeof SHOW_COMMANDS)[number]): Command {
  return {
    usage: `
Usage: ${HOW} ${name} --${option} <${option}> [--json]

Options:
  --json  print JSON, as the administration API returns it`,
    positionals: { min: 0, max: 1 },
    async run(args, io) {
      const named = getSubject(args, option)
      const row = await performCommand(io, `Cannot show ${noun}`, admin => read(admin, named))
      if (isSet(args, 'json')) printJson(io, row)
      else
        io.stdout.write(
          `${formatColumns(Object.entries(row).map(([member, value]) => [member, String(value)]))}\n`,
        )
      return 0
    },
  }
}
