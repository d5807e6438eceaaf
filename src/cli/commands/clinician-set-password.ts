import { subject } from '../arguments.ts'
import { type Command, CommandFailure } from '../command.ts'
import { readNewPassword, warnIfShort } from '../password.ts'
import { withStore } from '../with-store.ts'

/** `sallyport clinician set-password`: whoever was logged in with the old one is logged out. */
export const clinicianSetPassword: Command = {
  name: 'clinician set-password',
  summary: 'Set the password of a clinician, and end the logins with the old one',
  usage: `
Usage: npm run -s sallyport -- clinician set-password --username <name>

The password is asked for, or read from standard input (its first line, at most 72 bytes).`,
  options: { username: { type: 'string' } },
  positionals: { min: 0, max: 1 },
  async run(args, io) {
    const username = subject(args, 'username')
    const password = await readNewPassword(io)
    const { hashPassword } = await import('../../auth/index.ts')
    const password_hash = await hashPassword(password)
    await withStore(io, ({ db }) =>
      db.transaction().execute(async trx => {
        const changed = await trx
          .updateTable('clinician')
          .set({ password_hash })
          .where('username', '=', username)
          .returning('id')
          .executeTakeFirst()
        if (!changed) throw new CommandFailure(`Cannot set password: there is no clinician ${username}`)
        await trx.deleteFrom('login').where('clinician_id', '=', changed.id).execute()
      }),
    )
    io.stdout.write(`Set the password of clinician ${username}\n`)
    warnIfShort(password, io)
    return 0
  },
}
