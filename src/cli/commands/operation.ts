import { OPERATION_COMMANDS } from '../../auth/index.ts'
import { HOW, isRecord } from '../../core/index.ts'
import { type Command, getSubject } from '../command.ts'
import { performCommand } from '../with-store.ts'
import { noteNoAdministrator } from './account.ts'

/** The commands of operations, which the tables of operations describe. */
export const commands = Object.fromEntries(
  OPERATION_COMMANDS.map(operation => [operation.name, defineOperation(operation)]),
)

export function defineOperation({
  name,
  option,
  help = '',
  act,
  perform,
}: (typeof OPERATION_COMMANDS)[number]): Command {
  const subject = option === undefined ? '' : ` --${option} <${option === 'username' ? 'name' : option}>`
  return {
    usage: `
Usage: ${HOW} ${name}${subject}
${help}`,
    ...(option !== undefined && { positionals: { min: 0, max: 1 } }),
    async run(args, io) {
      const named = option === undefined ? '' : getSubject(args, option)
      const { changed, text } = await performCommand(io, `Cannot ${act}`, (admin, openSealer) =>
        perform(admin, named, openSealer),
      )
      io.stdout.write(`${text}\n`)
      if (isRecord(changed) && changed.admin === true) await noteNoAdministrator(io)
      return 0
    },
  }
}
