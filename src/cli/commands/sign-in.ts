import { HOW } from '../../core/index.ts'
import { type Command, getSubject } from '../command.ts'
import { performCommand } from '../with-store.ts'

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

export const commands = { 'sign-in end': signInEnd }
