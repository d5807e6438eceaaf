import { OPERATION_COMMANDS } from '../../auth/index.ts'
import { HOW, isRecord } from '../../core/index.ts'
import { type Command, getSubject } from '../command.ts'
import { performCommand } from '../with-store.ts'
import { noteNoAdministrator } from './account.ts'

/** The commands of operations on one app or user, which the table of operations describes. */
export const commands = Object.fromEntries(
  OPERATION_COMMANDS.map(operation => [operation.name, defineOperation(operation)]),
)

export function defineOperation({
  name,
  noun,
  option,
  help = '',
  done,
  perform,
}: (typeof OPERATION_COMMANDS)[number]): Command {
  const [, verb] = name.split(' ')
  return {
    usage: `
Usage: ${HOW} ${name} --${option} <${option === 'username' ? 'name' : option}>
${help}`,
    positionals: { min: 0, max: 1 },
    async run(args, io) {
      const subject = getSubject(args, option)
      const changed = await performCommand(io, `Cannot ${verb} ${noun}`, (admin, openSealer) =>
        perform(admin, subject, openSealer),
      )
      io.stdout.write(`${done} ${noun} ${subject}\n`)
      if (isRecord(changed) && changed.admin === true) await noteNoAdministrator(io)
      return 0
    },
  }
}
