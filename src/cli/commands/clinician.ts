import type { UserChanges } from '../../auth/index.ts'
import { getProviderIssuer, readSettings } from '../../config/index.ts'
import {
  type Arguments,
  type Command,
  failMisuse,
  formatColumns,
  getOptional,
  getRequired,
  getSubject,
  type Io,
  isSet,
} from '../command.ts'
import { readFhirUser } from '../start/files.ts'
import { performCommand, withStore } from '../with-store.ts'
import { addAccount, readNewPassword, readUsername, warnIfShort } from './account.ts'

const clinicianAdd: Command = {
  usage: `
Usage: npm run -s sallyport -- clinician add --username <name> --display-name <text> --fhir-user <practitioner id> [--admin]

The clinician can log in at once. Prompts for the password, or reads it from the first line of standard input (at most
72 bytes):
  echo "$PASSWORD" | npm run -s sallyport -- clinician add --username ada --display-name "Dr. Ada Byron" --fhir-user practitioner-7

Options:
  --username <name>        login name
  --display-name <text>    name shown on pages
  --fhir-user <id>         id of the Practitioner resource, for example practitioner-7 or Practitioner/practitioner-7
  --admin                  the clinician is an administrator`,
  options: {
    username: { type: 'string' },
    'display-name': { type: 'string' },
    'fhir-user': { type: 'string' },
    admin: { type: 'boolean' },
  },
  positionals: { min: 0, max: 0 },
  async run(args, io) {
    return addAccount(io, {
      kind: 'clinician',
      username: readUsername(getRequired(args, 'username')),
      displayName: getRequired(args, 'display-name'),
      fhirUser: readPractitioner(getRequired(args, 'fhir-user'), io),
      admin: isSet(args, 'admin'),
    })
  },
}

function readPractitioner(text: string, { env, cwd }: Io): string {
  const { type, id } = readFhirUser(text, readSettings(env, cwd).fhirBaseUrl)
  if (type === 'Practitioner') return `Practitioner/${id}`
  throw failMisuse('Cannot use --fhir-user: expected the id of a Practitioner, or Practitioner/<id>')
}

const clinicianList: Command = {
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
      row.fhir_user_id.includes('/') ? row.fhir_user_id : `Practitioner/${row.fhir_user_id}`,
      row.disabled ? 'disabled' : row.for_loopback ? 'loopback only' : row.admin ? 'administrator' : 'active',
      row.id,
    ])
    io.stdout.write(
      `${formatColumns([['USERNAME', 'DISPLAY NAME', 'FHIR USER', 'STATE', 'ID'], ...lines])}\n`,
    )
    return 0
  },
}

const clinicianSetPassword: Command = {
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
    const { setPassword } = await import('../../auth/index.ts')
    const keepApps = isSet(args, 'keep-apps')
    await performCommand(io, 'Cannot set password', admin =>
      setPassword(admin, { username }, { password, keepApps }),
    )
    io.stdout.write(`Set the password of clinician ${username}\n`)
    warnIfShort(password, io)
    return 0
  },
}

const clinicianSet: Command = {
  usage: `
Usage: npm run -s sallyport -- clinician set --username <name> [--admin | --no-admin] [--display-name <text>]
         [--fhir-user <practitioner id>]

Changes only the given properties, at once. An identity provider that names a user an administrator (smart.login.providers) does so
again at each sign-in, even after --no-admin.

Options:
  --username <name>        the clinician
  --admin                  the clinician becomes an administrator
  --no-admin               the clinician is no longer an administrator
  --display-name <text>    name shown on pages
  --fhir-user <id>         id of the Practitioner resource`,
  options: {
    username: { type: 'string' },
    admin: { type: 'boolean' },
    'no-admin': { type: 'boolean' },
    'display-name': { type: 'string' },
    'fhir-user': { type: 'string' },
  },
  positionals: { min: 0, max: 1 },
  async run(args, io) {
    const username = getSubject(args, 'username')
    const changes = readChanges(args, io)
    const { changeUser } = await import('../../auth/index.ts')
    await performCommand(io, 'Cannot change clinician', admin => changeUser(admin, { username }, changes))
    io.stdout.write(`Changed clinician ${username}\n`)
    return 0
  },
}

function readChanges(args: Arguments, io: Io): UserChanges {
  if (isSet(args, 'admin') && isSet(args, 'no-admin'))
    throw failMisuse('Expected --admin or --no-admin, not both')
  const displayName = getOptional(args, 'display-name')
  const fhirUser = getOptional(args, 'fhir-user')
  const changes = {
    ...(isSet(args, 'admin') && { admin: true }),
    ...(isSet(args, 'no-admin') && { admin: false }),
    ...(displayName !== undefined && { displayName }),
    ...(fhirUser !== undefined && { fhirUser: readPractitioner(fhirUser, io) }),
  }
  if (Object.keys(changes).length === 0) throw failMisuse('Nothing to change: specify an option')
  return changes
}

const clinicianLink: Command = {
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
    const { linkUser } = await import('../../auth/index.ts')
    await performCommand(io, 'Cannot link clinician', admin => linkUser(admin, { username }, link))
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

export const commands = {
  'clinician add': clinicianAdd,
  'clinician list': clinicianList,
  'clinician set': clinicianSet,
  'clinician set-password': clinicianSetPassword,
  'clinician link': clinicianLink,
}
