import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import type { ChangedUser, NewUser, UserChanges, UserDescription, UserKind } from '../../auth/index.ts'
import { readSettings, type Settings } from '../../config/index.ts'
import { HOW, isNewUsername, NEW_USERNAME_RULE } from '../../core/index.ts'
import { isId } from '../../fhir/index.ts'
import {
  type Arguments,
  addNotes,
  type Command,
  CommandFailure,
  type ExitCode,
  failMisuse,
  getRequired,
  getSeveral,
  getSubject,
  getText,
  type Io,
  isSet,
} from '../command.ts'
import { findOperator } from '../operator.ts'
import { performCommand, withSealer } from '../with-store.ts'
import { describeOptions, readCleared, readOptions, refuseTwoFlags } from './user-options.ts'

const accountAdd: Command = {
  usage: `
Usage: ${HOW} account add --username <name> [--patient <id>] [--related-person <id>]… [--display-name <text>]
         [--activation-link]

Adds a patient, who signs in to apps with access to their own record only, or a related person, who has access to the records
of the patients they act for. Without a display name it is the username. Prompts for the password, or reads it from the first line of standard input (at most 72 bytes):
  echo "$PASSWORD" | ${HOW} account add --username alba --patient patient-1

Options:
  --username <name>        name to sign in with
  --patient <id>           id of the Patient resource, for example patient-1 or Patient/patient-1
  --related-person <id>    id of a RelatedPerson resource, which names the patient; once for each patient
${describeOptions('account', 'add')}
  --activation-link        print a link with which the user chooses a password, and read no password`,
  async run(args, io) {
    const username = readUsername(getRequired(args, 'username'))
    const patients = readIds(args, 'patient', 'Patient').slice(-1)
    const relatedPersons = readIds(args, 'related-person', 'RelatedPerson')
    const [fhirUser] = [
      ...patients.map(id => `Patient/${id}`),
      ...relatedPersons.map(id => `RelatedPerson/${id}`),
    ]
    if (fhirUser === undefined) throw failMisuse('Needs --patient or --related-person')
    const displayName = getText(args, 'display-name') || username
    const named = { kind: 'account', username, displayName, fhirUser, relatedPersons } as const
    return addAccount(args, io, { ...readOptions(args, 'account'), ...named })
  },
}

const accountSet: Command = {
  usage: `
Usage: ${HOW} account set --username <name> [--patient <id>] [--related-person <id>]… [--no-related-persons]
         [--display-name <text>]

Changes only the given properties, at once. A user who no longer acts for a patient is signed out everywhere, and apps lose
the access that the user gave them.

Options:
  --username <name>        the account
  --patient <id>           id of the user's own Patient resource
  --related-person <id>    id of a RelatedPerson resource, which names the patient; replaces all others, so name each
  --no-related-persons     the user no longer acts for other patients
${describeOptions('account', 'set')}`,
  positionals: { min: 0, max: 1 },
  async run(args, io) {
    const [patient] = readIds(args, 'patient', 'Patient').slice(-1)
    const related = readIds(args, 'related-person', 'RelatedPerson')
    if (isSet(args, 'no-related-persons') && related.length > 0)
      throw failMisuse('Expected --related-person or --no-related-persons, not both')
    return changeAccount(args, io, 'account', {
      ...(patient !== undefined && { fhirUser: `Patient/${patient}` }),
      ...((related.length > 0 || isSet(args, 'no-related-persons')) && { relatedPersons: related }),
    })
  },
}

/** The ids of the resources that an option names, by id or with their type. */
function readIds(args: Arguments, option: string, type: string): readonly string[] {
  return getSeveral(args, option).map(value => {
    const id = value.replace(`${type}/`, '')
    if (isId(id)) return id
    throw failMisuse(`Cannot use --${option}: expected the id of a ${type}, or ${type}/<id>`)
  })
}

/** Adds a clinician, or the account of a patient or of related persons. */
export async function addAccount(args: Arguments, io: Io, user: NewUser): Promise<ExitCode> {
  const { kind, username } = user
  const secret = await readSecret(args, io)
  const { addUser } = await import('../../auth/index.ts')
  const refusal = `Cannot add ${kind} ${username}`
  const added = await performCommand(io, refusal, admin => addUser(admin, { ...user, ...secret }))
  io.stdout.write(`Added ${kind} ${username} with id ${added.id}\n`)
  await noteSecret(added, secret, io)
  await addNotes(io, () => noteFhirUsers(added, io))
  return 0
}

/** Changes what the options name, and `own`, which only users of this kind have. */
export async function changeAccount(
  args: Arguments,
  io: Io,
  kind: UserKind,
  own: UserChanges = {},
): Promise<ExitCode> {
  const username = getSubject(args, 'username')
  refuseTwoFlags(args, kind)
  const changes = { ...readCleared(args, kind), ...readOptions(args, kind), ...own }
  if (Object.keys(changes).length === 0) throw failMisuse('Nothing to change: specify an option')
  const { changeUser } = await import('../../auth/index.ts')
  // `clinician …` also finds the accounts of patients, as in the first release.
  const target = kind === 'account' ? { username, kind } : { username }
  const user = await performCommand(io, `Cannot change ${kind}`, admin => changeUser(admin, target, changes))
  io.stdout.write(`Changed ${kind} ${username}\n`)
  if (kind === 'account' || changes.fhirUser !== undefined) await addNotes(io, () => noteFhirUsers(user, io))
  if (changes.admin === false || changes.auditor) await noteNoAdministrator(io)
  return 0
}

/** A new password, unless the user gets a link to choose one. */
type Secret = Pick<NewUser, 'password' | 'withLink'>

export async function readSecret(args: Arguments, io: Io): Promise<Secret> {
  return isSet(args, 'activation-link') ? { withLink: true } : { password: await readNewPassword(io) }
}

/** Prints the link, or says what the user will notice about the password. */
export async function noteSecret(user: ChangedUser, { password }: Secret, io: Io): Promise<void> {
  const { activationLink } = user
  if (password !== undefined) await addNotes(io, () => notePassword({ ...user, password }, io))
  if (activationLink)
    io.stdout.write(
      `${activationLink.url}\nThe user can choose a password with this link, once, until ${new Date(activationLink.expiresAt).toISOString()}\n`,
    )
}

/** Warns if nobody can use `/admin` any longer. */
export function noteNoAdministrator(io: Io): Promise<void> {
  return addNotes(io, () => findNoAdministrator(io))
}

async function findNoAdministrator(io: Io): Promise<void> {
  if (readSettings(io.env, io.cwd).login.providers.some(({ admin }) => admin)) return
  const { listUsers } = await import('../../auth/index.ts')
  const { items } = await performCommand(io, 'Cannot list administrators', admin =>
    listUsers(admin, { admin: true, disabled: false, limit: 1 }),
  )
  if (items.length === 0)
    io.stderr.write(
      `Note: no administrator is left; ${HOW} clinician set --username <name> --admin adds one\n`,
    )
}

/** Warns if the FHIR server does not have a resource of the user, so that apps cannot read it, or if other accounts have it too. */
export async function noteFhirUsers(user: UserDescription, io: Io): Promise<void> {
  const { describeSharing, listFhirUsers } = await import('../../auth/index.ts')
  const references = listFhirUsers(user)
  const settings = readSettings(io.env, io.cwd)
  const unknown =
    settings.fhir.upstreamUrl === undefined
      ? await findUnknownInFile(settings, references)
      : await findUnknownAtServer(settings, io, references)
  if (!unknown)
    io.stderr.write(`Note: the FHIR server does not respond, so ${references.join(', ')} was not looked up\n`)
  for (const reference of unknown ?? [])
    io.stderr.write(`Note: the FHIR server has no ${reference}; create or import it\n`)
  const sharing = await performCommand(io, 'Cannot list accounts', admin => describeSharing(admin, user))
  for (const text of sharing) io.stderr.write(`Note: ${text}\n`)
}

/** The embedded server's file, also if the server does not run. Before the first start there is none. */
async function findUnknownInFile(
  settings: Settings,
  references: readonly string[],
): Promise<readonly string[] | undefined> {
  const file = join(settings.dataDir, 'fhir.db')
  if (!existsSync(file)) return []
  const { openRepository } = await import('../../backends/sqlite/index.ts')
  try {
    const repository = openRepository({ file, baseUrl: settings.fhirBaseUrl })
    const unknown = references.filter(reference => {
      const [type = '', id = ''] = reference.split('/')
      return repository.find(type, id)?.deleted !== false
    })
    repository.close()
    return unknown
  } catch {
    // The user is added anyway; `start` reports problems with the data.
    return undefined
  }
}

async function findUnknownAtServer(
  settings: Settings,
  io: Io,
  references: readonly string[],
): Promise<readonly string[] | undefined> {
  const { findUnknown, makeCommandLine, makeLookupContext } = await import('../../auth/index.ts')
  return withSealer(settings, async (store, sealer) => {
    const context = makeLookupContext({ settings, store, sealer })
    // Before the first start there is no key for a token.
    return findUnknown(context, makeCommandLine(findOperator(io)), references).catch(() => undefined)
  })
}

export function readUsername(text: string): string {
  if (isNewUsername(text)) return text
  throw failMisuse(`Cannot use --username: a username has ${NEW_USERNAME_RULE}`)
}

const MAX_LINE_BYTES = 4096
/** bcrypt ignores further bytes. */
const MAX_BYTES = 72

/** Prompts twice without echo on a terminal; otherwise reads the first line of standard input. */
async function readNewPassword(io: Io): Promise<string> {
  const password = io.stdin.isTTY ? await askTwice(io) : await readFirstLine(io.stdin)
  if (password === '') throw new CommandFailure('Cannot use password: it is empty')
  if (Buffer.byteLength(password) > MAX_BYTES) {
    throw new CommandFailure(
      `Cannot use password: it is longer than ${MAX_BYTES} bytes, the most that bcrypt reads`,
    )
  }
  if (password.includes('\0')) throw new CommandFailure('Cannot use password: it contains a NUL character')
  return password
}

/** Says what the user will notice about the password. */
async function notePassword(
  { password, ...owner }: Pick<NewUser, 'username' | 'displayName'> & { readonly password: string },
  io: Io,
): Promise<void> {
  const { findNewPasswordFault } = await import('../../auth/index.ts')
  const { brand, minPasswordLength: minLength, onLoopback } = readSettings(io.env, io.cwd)
  const fault = findNewPasswordFault(password, { ...owner, brand: brand.name, minLength })
  if (fault !== undefined) io.stderr.write(`Password is easy to guess: ${fault.text}\n`)
  if (!onLoopback) io.stdout.write('The user chooses another password at the next sign-in\n')
}

async function askTwice(io: Io): Promise<string> {
  const unseen = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: io.stdin, output: unseen, terminal: true, historySize: 0 })
  lines.once('SIGINT', () => lines.close())
  // One reader for both prompts, so that type-ahead is not lost.
  const typed = lines[Symbol.asyncIterator]()
  try {
    const password = await ask('Password: ', typed, io)
    if ((await ask('Password again: ', typed, io)) === password) return password
    throw new CommandFailure('Cannot use password: the two entries differ')
  } finally {
    lines.close()
  }
}

async function ask(prompt: string, typed: AsyncIterator<string>, io: Io): Promise<string> {
  io.stderr.write(prompt)
  const answer = await typed.next()
  io.stderr.write('\n')
  if (answer.done) throw new CommandFailure('Cannot read password: canceled')
  return answer.value
}

async function readFirstLine(input: NodeJS.ReadableStream): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of input) {
    const bytes = Buffer.from(chunk)
    chunks.push(bytes)
    length += bytes.length
    if (bytes.includes('\n') || length > MAX_LINE_BYTES) break
  }
  return (Buffer.concat(chunks).toString('utf8').split('\n')[0] ?? '').replace(/\r$/, '')
}

export const commands = {
  'account add': accountAdd,
  'account set': accountSet,
}
