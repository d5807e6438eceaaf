import { getSubject, isSet } from '../arguments.ts'
import { type Command, CommandFailure } from '../command.ts'
import { readNewPassword, warnIfShort } from '../password.ts'
import { administer } from '../with-store.ts'

/** `sallyport clinician set-password`: ends the clinician's logins and the access of apps. */
export const clinicianSetPassword: Command = {
  name: 'clinician set-password',
  summary: "Set a password; end the clinician's logins and app access",
  usage: `
Usage: npm run -s sallyport -- clinician set-password --username <name> [--keep-apps]

Options:
  --username <name>  the clinician
  --keep-apps        do not revoke the access of apps that have offline_access

FHIR servers refuse the revoked access tokens within 5 seconds. Prompts for the password, or reads it from the first line of
standard input (at most 72 bytes).`,
  options: { username: { type: 'string' }, 'keep-apps': { type: 'boolean' } },
  positionals: { min: 0, max: 1 },
  async run(args, io) {
    const username = getSubject(args, 'username')
    const password = await readNewPassword(io)
    const { endAccess, hashPassword } = await import('../../auth/index.ts')
    const password_hash = await hashPassword(password)
    await administer(io, `clinician set-password ${username}`, async trx => {
      const changed = await trx
        .updateTable('clinician')
        .set({ password_hash })
        .where('username', '=', username)
        .returning('id')
        .executeTakeFirst()
      if (!changed) throw new CommandFailure(`Cannot set password: there is no clinician ${username}`)
      await endAccess(trx, changed.id, { now: Date.now(), keepOffline: isSet(args, 'keep-apps') })
    })
    io.stdout.write(`Set the password of clinician ${username}\n`)
    warnIfShort(password, io)
    return 0
  },
}
