import { HOW } from '../../core/index.ts'
import { type Arguments, type Command, getSubject } from '../command.ts'
import { performCommand } from '../with-store.ts'

const grantRevoke: Command = {
  usage: `
Usage: ${HOW} grant revoke --id <id>

The app loses this access. FHIR servers refuse its tokens within 5 seconds. The user can launch the app again.`,
  positionals: { min: 0, max: 1 },
  async run(args: Arguments, io) {
    const id = getSubject(args, 'id')
    const { revokeGrantById } = await import('../../auth/index.ts')
    await performCommand(io, 'Cannot revoke grant', admin => revokeGrantById(admin, id))
    io.stdout.write(`Revoked grant ${id}\n`)
    return 0
  },
}

export const commands = { 'grant revoke': grantRevoke }
