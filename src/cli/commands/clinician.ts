import type { NewUser } from '../../auth/index.ts'
import { getProviderIssuer, readSettings } from '../../config/index.ts'
import { HOW } from '../../core/index.ts'
import {
  type Arguments,
  type Command,
  failMisuse,
  getOptional,
  getRequired,
  getSubject,
  type Io,
  isSet,
} from '../command.ts'
import { readFhirUser } from '../start/files.ts'
import { performCommand } from '../with-store.ts'
import { addAccount, changeAccount, noteSecret, readSecret, readUsername } from './account.ts'
import { describeOptions, readOptions } from './user-options.ts'

const clinicianAdd: Command = {
  usage: `
Usage: ${HOW} clinician add --username <name> --display-name <text>
         (--fhir-user <practitioner id> | --no-records) [--admin | --auditor] [--activation-link]

The clinician can sign in at once. Prompts for the password, or reads it from the first line of standard input (at most
72 bytes):
  echo "$PASSWORD" | ${HOW} clinician add --username ada --display-name "Dr. Ada Byron" --fhir-user practitioner-7

Options:
  --username <name>        name to sign in with
  --fhir-user <id>         id of the Practitioner resource, for example practitioner-7 or Practitioner/practitioner-7
  --no-records             instead of it: the account opens no patient records (administration only)
${describeOptions('clinician', 'add')}
  --activation-link        print a link with which the user chooses a password, and read no password`,
  async run(args, io) {
    return addAccount(args, io, {
      ...readOptions(args, 'clinician'),
      kind: 'clinician',
      username: readUsername(getRequired(args, 'username')),
      displayName: getRequired(args, 'display-name'),
      ...(readRecords(args, io) ?? { fhirUser: getRequired(args, 'fhir-user') }),
    })
  },
}

/** The FHIR user, or that there is none. Undefined if neither is given. */
function readRecords(args: Arguments, io: Io): Pick<NewUser, 'fhirUser' | 'records'> | undefined {
  const fhirUser = getOptional(args, 'fhir-user')
  if (isSet(args, 'no-records')) {
    if (fhirUser !== undefined) throw failMisuse('Expected --fhir-user or --no-records, not both')
    return { fhirUser: '', records: false }
  }
  return fhirUser === undefined ? undefined : { fhirUser: readPractitioner(fhirUser, io), records: true }
}

function readPractitioner(text: string, { env, cwd }: Io): string {
  const { type, id } = readFhirUser(text, readSettings(env, cwd).fhirBaseUrl)
  if (type === 'Practitioner') return `Practitioner/${id}`
  throw failMisuse('Cannot use --fhir-user: expected the id of a Practitioner, or Practitioner/<id>')
}

const clinicianSetPassword: Command = {
  usage: `
Usage: ${HOW} clinician set-password --username <name> [--activation-link] [--keep-apps]

Options:
  --username <name>  the clinician
  --activation-link  print a link with which the user chooses a password, and read no password
  --keep-apps        do not revoke the access of apps that have offline_access

FHIR servers refuse the revoked access tokens within 5 seconds. Prompts for the password, or reads it from the first line of
standard input (at most 72 bytes).`,
  positionals: { min: 0, max: 1 },
  async run(args, io) {
    const username = getSubject(args, 'username')
    const secret = await readSecret(args, io)
    const { setPassword } = await import('../../auth/index.ts')
    const keepApps = isSet(args, 'keep-apps')
    const user = await performCommand(io, 'Cannot set password', admin =>
      setPassword(admin, { username }, { ...secret, keepApps }),
    )
    io.stdout.write(`${secret.withLink ? 'Removed' : 'Set'} the password of clinician ${username}\n`)
    await noteSecret(user, secret, io)
    return 0
  },
}

const clinicianSet: Command = {
  usage: `
Usage: ${HOW} clinician set --username <name> [--admin | --no-admin | --auditor | --no-auditor]
         [--display-name <text>] [--fhir-user <practitioner id> | --no-records]

Changes only the given properties, at once. An identity provider that names a user an administrator (smart.login.providers) does so
again at each sign-in, even after --no-admin.

Options:
  --username <name>        the clinician
  --fhir-user <id>         id of the Practitioner resource
  --no-records             the account has no FHIR user and opens no patient records; its sign-ins and the access of apps end
${describeOptions('clinician', 'set')}`,
  positionals: { min: 0, max: 1 },
  run: (args, io) => changeAccount(args, io, 'clinician', readRecords(args, io)),
}

const clinicianLink: Command = {
  usage: `
Usage: ${HOW} clinician link --username <name> --issuer <issuer> --subject <subject>

The user of the identity provider then signs in as this clinician, with the clinician's own Practitioner. A user has one
link: a new one replaces it.

Options:
  --username <name>    the clinician
  --issuer <issuer>    the issuer (iss) of the provider; ldap:<id> for a directory
  --subject <subject>  the subject (sub) of the user; entryUUID or objectGUID for a directory`,
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
  'clinician set': clinicianSet,
  'clinician set-password': clinicianSetPassword,
  'clinician link': clinicianLink,
}
