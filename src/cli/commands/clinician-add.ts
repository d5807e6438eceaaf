import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readSettings } from '../../config/index.ts'
import { getRequired } from '../arguments.ts'
import { type Command, CommandFailure, failMisuse, type Io } from '../command.ts'
import { readFhirUser } from '../fhir-user.ts'
import { readNewPassword, warnIfShort } from '../password.ts'
import { administer } from '../with-store.ts'

/** `sallyport clinician add`: one row of the clinician table (LOGIN-1). */
export const clinicianAdd: Command = {
  name: 'clinician add',
  summary: 'Add a clinician',
  usage: `
Usage: npm run -s sallyport -- clinician add --username <name> --display-name <text> --fhir-user <practitioner id>

The clinician can log in at once. Prompts for the password, or reads it from the first line of standard input (at most
72 bytes):
  echo "$PASSWORD" | npm run -s sallyport -- clinician add --username ada --display-name "Dr. Ada Byron" --fhir-user practitioner-7

Options:
  --username <name>        login name
  --display-name <text>    name shown on pages
  --fhir-user <id>         id of the Practitioner resource, for example practitioner-7 or Practitioner/practitioner-7`,
  options: {
    username: { type: 'string' },
    'display-name': { type: 'string' },
    'fhir-user': { type: 'string' },
  },
  positionals: { min: 0, max: 0 },
  async run(args, io) {
    const row = {
      username: usernameOf(getRequired(args, 'username')),
      display_name: getRequired(args, 'display-name'),
      fhir_user_id: practitionerIdOf(
        getRequired(args, 'fhir-user'),
        readSettings(io.env, io.cwd).fhirBaseUrl,
      ),
    }
    const password = await readNewPassword(io)
    const { hashPassword } = await import('../../auth/index.ts')
    const password_hash = await hashPassword(password)
    const added = await administer(io, `clinician add ${row.username}`, async trx => {
      const inserted = await trx
        .insertInto('clinician')
        .values({ ...row, password_hash })
        .onConflict(conflict => conflict.column('username').doNothing())
        .returning('id')
        .executeTakeFirst()
      if (!inserted) throw new CommandFailure(`Cannot add clinician ${row.username}: the username is taken`)
      return inserted
    })
    io.stdout.write(`Added clinician ${row.username} with id ${added.id}\n`)
    warnIfShort(password, io)
    await noteAbsent(row.fhir_user_id, io)
    return 0
  },
}

/** Says that nobody is there by that id, where we have the data: an app could not read who its user is. */
async function noteAbsent(id: string, { env, cwd, stderr }: Io): Promise<void> {
  const settings = readSettings(env, cwd)
  const file = join(settings.dataDir, 'fhir.db')
  if (settings.fhir.upstreamUrl !== undefined || !existsSync(file)) return
  const { openRepository } = await import('../../backends/sqlite/index.ts')
  try {
    const repository = openRepository({ file, baseUrl: settings.fhirBaseUrl })
    const found = repository.find('Practitioner', id)
    repository.close()
    if (found?.deleted !== false)
      stderr.write(`Note: the FHIR server has no Practitioner/${id}; create or import it\n`)
  } catch {
    // The clinician is added all the same: what is wrong with the data, the start says.
  }
}

function usernameOf(text: string): string {
  if (/^[^\s\p{Cc}](?:[^\p{Cc}]{0,98}[^\s\p{Cc}])?$/u.test(text)) return text
  throw failMisuse('Cannot use --username: expected at most 100 characters without space around them')
}

/** The id without the type, as the table stores it (LOGIN-1). */
function practitionerIdOf(text: string, fhirBaseUrl: string): string {
  const { type, id } = readFhirUser(text, fhirBaseUrl)
  if (type === 'Practitioner') return id
  throw failMisuse('Cannot use --fhir-user: expected the id of a Practitioner, or Practitioner/<id>')
}
