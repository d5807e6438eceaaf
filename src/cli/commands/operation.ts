import { OPERATION_COMMANDS } from '../../auth/index.ts'
import { HOW, isRecord } from '../../core/index.ts'
import { type Command, getSubject } from '../command.ts'
import { performCommand } from '../with-store.ts'
import { noteNoAdministrator } from './account.ts'

/** The commands of operations on one app or user, which the table of operations describes. */
export const commands = Object.fromEntries(
  OPERATION_COMMANDS.map(operation => [operation.name, defineCommand(operation)]),
)

function defineCommand({
  name,
  option,
  help = '',
  done,
  perform,
}: (typeof OPERATION_COMMANDS)[number]): Command {
  const [group = '', verb] = name.split(' ')
  const noun = group === 'client' ? 'app' : group
  return {
    usage: `
Usage: ${HOW} ${name} --${option} <${option === 'id' ? 'id' : 'name'}>
${help}`,
    positionals: { min: 0, max: 1 },
    async run(args, io) {
      const subject = getSubject(args, option)
      const changed = await performCommand(io, `Cannot ${verb} ${noun}`, admin => perform(admin, subject))
      io.stdout.write(`${done} ${noun} ${subject}\n`)
      if (isRecord(changed) && changed.admin === true) await noteNoAdministrator(io)
      return 0
    },
  }
}
