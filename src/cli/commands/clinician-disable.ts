import { getSubject } from '../arguments.ts'
import { type Arguments, type Command, CommandFailure, type ExitCode, type Io } from '../command.ts'
import { administer } from '../with-store.ts'

const options = { username: { type: 'string' } } as const

/** `sallyport clinician disable`: logins end, and nothing that was granted can be renewed. */
export const clinicianDisable: Command = {
  name: 'clinician disable',
  summary: 'Disable a clinician; end the logins and app access',
  usage: `
Usage: npm run -s sallyport -- clinician disable --username <name>

FHIR servers refuse the clinician's access tokens within 5 seconds. After clinician enable, the clinician can log in again,
but apps do not get their access back.`,
  options,
  positionals: { min: 0, max: 1 },
  run: (args, io) => setDisabled(args, io, true),
}

/** `sallyport clinician enable`. */
export const clinicianEnable: Command = {
  name: 'clinician enable',
  summary: 'Enable a disabled clinician',
  usage: `
Usage: npm run -s sallyport -- clinician enable --username <name>`,
  options,
  positionals: { min: 0, max: 1 },
  run: (args, io) => setDisabled(args, io, false),
}

async function setDisabled(args: Arguments, io: Io, disabled: boolean): Promise<ExitCode> {
  const username = getSubject(args, 'username')
  const verb = disabled ? 'disable' : 'enable'
  await administer(io, `clinician ${verb} ${username}`, async trx => {
    const changed = await trx
      .updateTable('clinician')
      .set({ disabled })
      .where('username', '=', username)
      .returning('id')
      .executeTakeFirst()
    if (!changed) throw new CommandFailure(`Cannot ${verb} clinician: there is no clinician ${username}`)
    if (!disabled) return
    const { endAccess } = await import('../../auth/index.ts')
    await endAccess(trx, changed.id, { now: Date.now(), keepOffline: false })
  })
  io.stdout.write(`${disabled ? 'Disabled' : 'Enabled'} clinician ${username}\n`)
  return 0
}
