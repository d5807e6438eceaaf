import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { getProviderIssuer, readSettings } from '../../config/index.ts'
import {
  type Arguments,
  type Command,
  CommandFailure,
  type ExitCode,
  failMisuse,
  formatColumns,
  getRequired,
  getSubject,
  type Io,
  isSet,
} from '../command.ts'
import { readNewPassword, warnIfShort } from '../password.ts'
import { readFhirUser } from '../start/trusted-issuers.ts'
import { administer, withStore } from '../with-store.ts'

export const clinicianAdd: Command = {
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
      username: readUsername(getRequired(args, 'username')),
      display_name: getRequired(args, 'display-name'),
      fhir_user_id: practitionerIdOf(
        getRequired(args, 'fhir-user'),
        readSettings(io.env, io.cwd).fhirBaseUrl,
      ),
    }
    return addAccount(io, 'clinician', row)
  },
}

interface Account {
  readonly username: string
  readonly display_name: string
  /** The bare id of a Practitioner, `Patient/<id>` or `RelatedPerson/<id>`. */
  readonly fhir_user_id: string
}

/** Adds a clinician, or the account of a patient or of related persons. */
export async function addAccount(
  io: Io,
  kind: 'clinician' | 'account',
  row: Account,
  relatedPersons: readonly string[] = [],
): Promise<ExitCode> {
  const password = await readNewPassword(io)
  const { hashPassword } = await import('../../auth/index.ts')
  const password_hash = await hashPassword(password)
  const added = await administer(io, `${kind} add ${row.username}`, async trx => {
    const inserted = await trx
      .insertInto('clinician')
      .values({ ...row, password_hash })
      .onConflict(conflict => conflict.column('username').doNothing())
      .returning('id')
      .executeTakeFirst()
    if (!inserted) throw new CommandFailure(`Cannot add ${kind} ${row.username}: the username is taken`)
    for (const reference of new Set(relatedPersons))
      await trx
        .insertInto('account_related_person')
        .values({ clinician_id: inserted.id, related_person_id: reference.replace('RelatedPerson/', '') })
        .execute()
    return inserted
  })
  io.stdout.write(`Added ${kind} ${row.username} with id ${added.id}\n`)
  warnIfShort(password, io)
  for (const user of new Set([formatUser(row.fhir_user_id), ...relatedPersons])) await noteAbsent(user, io)
  return 0
}

function formatUser(fhirUserId: string): string {
  return fhirUserId.includes('/') ? fhirUserId : `Practitioner/${fhirUserId}`
}

/** Warns if the embedded FHIR server does not have the user's resource: apps could not read their user. */
async function noteAbsent(user: string, { env, cwd, stderr }: Io): Promise<void> {
  const settings = readSettings(env, cwd)
  const file = join(settings.dataDir, 'fhir.db')
  if (settings.fhir.upstreamUrl !== undefined || !existsSync(file)) return
  const { openRepository } = await import('../../backends/sqlite/index.ts')
  try {
    const repository = openRepository({ file, baseUrl: settings.fhirBaseUrl })
    const [type = '', id = ''] = user.split('/')
    const found = repository.find(type, id)
    repository.close()
    if (found?.deleted !== false) stderr.write(`Note: the FHIR server has no ${user}; create or import it\n`)
  } catch {
    // The clinician is added anyway; `start` reports problems with the data.
  }
}

export function readUsername(text: string): string {
  if (/^[^\s\p{Cc}](?:[^\p{Cc}]{0,98}[^\s\p{Cc}])?$/u.test(text)) return text
  throw failMisuse(
    'Cannot use --username: expected at most 100 characters without leading or trailing spaces',
  )
}

/** The id without the type, as the table stores it (LOGIN-1). */
function practitionerIdOf(text: string, fhirBaseUrl: string): string {
  const { type, id } = readFhirUser(text, fhirBaseUrl)
  if (type === 'Practitioner') return id
  throw failMisuse('Cannot use --fhir-user: expected the id of a Practitioner, or Practitioner/<id>')
}

export const clinicianList: Command = {
  usage: `
Usage: npm run -s sallyport -- clinician list`,
  options: {},
  positionals: { min: 0, max: 0 },
  async run(_args, io) {
    const rows = await withStore(io, ({ db }) =>
      db.selectFrom('clinician').selectAll().orderBy('username').execute(),
    )
    const lines = rows.map(row => [
      row.username,
      row.display_name,
      formatUser(row.fhir_user_id),
      row.disabled ? 'disabled' : 'active',
      row.id,
    ])
    io.stdout.write(
      `${formatColumns([['USERNAME', 'DISPLAY NAME', 'FHIR USER', 'STATE', 'ID'], ...lines])}\n`,
    )
    return 0
  },
}

export const clinicianSetPassword: Command = {
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

const options = { username: { type: 'string' } } as const

export const clinicianDisable: Command = {
  usage: `
Usage: npm run -s sallyport -- clinician disable --username <name>

FHIR servers refuse the clinician's access tokens within 5 seconds. After clinician enable, the clinician can log in again,
but apps do not get their access back.`,
  options,
  positionals: { min: 0, max: 1 },
  run: (args, io) => setDisabled(args, io, true),
}

export const clinicianEnable: Command = {
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

export const clinicianLink: Command = {
  usage: `
Usage: npm run -s sallyport -- clinician link --username <name> --issuer <issuer> --subject <subject>

The user of the identity provider then signs in as this clinician, with the clinician's own Practitioner. A user has one
link: a new one replaces it.

Options:
  --username <name>    the clinician
  --issuer <issuer>    the issuer (iss) of the provider; ldap:<id> for a directory
  --subject <subject>  the subject (sub) of the user; entryUUID or objectGUID for a directory`,
  options: { username: { type: 'string' }, issuer: { type: 'string' }, subject: { type: 'string' } },
  positionals: { min: 0, max: 0 },
  async run(args, io) {
    const username = getRequired(args, 'username')
    const link = { issuer: getRequired(args, 'issuer'), subject: getRequired(args, 'subject') }
    await administer(io, `clinician link ${username}`, async trx => {
      const found = await trx
        .selectFrom('clinician')
        .select('id')
        .where('username', '=', username)
        .executeTakeFirst()
      if (!found) throw new CommandFailure(`Cannot link clinician: there is no clinician ${username}`)
      const linked = { clinician_id: found.id, provisioned: false, created_at: Date.now() }
      await trx
        .insertInto('clinician_link')
        .values({ ...link, ...linked })
        .onConflict(conflict => conflict.columns(['issuer', 'subject']).doUpdateSet(linked))
        .execute()
    })
    io.stdout.write(`Linked clinician ${username} to ${link.subject} of ${link.issuer}\n`)
    noteUnknownIssuer(link.issuer, io)
    return 0
  },
}

function noteUnknownIssuer(issuer: string, { env, cwd, stderr }: Io): void {
  const { providers } = readSettings(env, cwd).login
  if (!providers.some(provider => getProviderIssuer(provider) === issuer))
    stderr.write(`Note: no sign-in provider of the settings has the issuer ${issuer}\n`)
}
