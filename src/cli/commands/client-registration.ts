import {
  ADMIN_READ_SCOPE,
  ADMIN_SCOPE,
  AUDIT_SCOPE,
  addClient,
  CLIENT_DEFAULTS,
  CLIENT_FIELDS,
  type ClientChanges,
  type ClientFault,
  changeClient,
  findClientFault,
  findClientIdFault,
  listScopeNotes,
  normalizeScope,
  PLAIN_FIELDS,
  readRegisteredKeys,
} from '../../auth/index.ts'
import { readSettings } from '../../config/index.ts'
import { HOW, isFailure } from '../../core/index.ts'
import {
  type Arguments,
  type Command,
  CommandFailure,
  failMisuse,
  getOptional,
  getRequired,
  getSeveral,
  getSubject,
  type Io,
  isSet,
  readJsonFile,
} from '../command.ts'
import { performCommand } from '../with-store.ts'

const describingUsage = `\
  --redirect-uri <url>      redirect URI, compared exactly; repeat the option for several. https, http on loopback, or a
                            private-use scheme (com.example.app:/callback). Not needed if all scopes are system/ scopes.
                            For a public app, http://127.0.0.1/… and http://[::1]/… match every port; localhost does not
  --post-logout-redirect-uri <url>
                            URL to which the app may redirect after a sign-out; repeat the option for several
  --scope "<scopes>"        scopes that the app may request, separated by spaces; also the default if a request has no scope
  --public                  public: a browser or native app, with PKCE and without a secret
  --secret                  confidential: with a generated secret, which is printed once
  --jwks-url <url>          confidential: with keys (private_key_jwt), published at this URL; not fetched now
  --jwks-file <file>        confidential: with keys, from a file of public keys
  --launch-url <url>        launch URL, to which the portal sends the browser. If it has a fragment (https://…/#/launch),
                            iss and launch are added before the fragment
  --pkce <required|optional>
                            optional: the app may omit code_challenge, as apps written for SMART 1 do (default: required)
  --no-iss-parameter        omit iss (RFC 9207) from authorization responses, for apps that keep the response in the
                            address bar and mistake iss for a launch, such as fhirclient in a new tab. Only apps
                            that use several authorization servers need iss (mix-up attacks)
  --first-party             app of your own organization: its users are not asked for consent
  --name <text>             name shown to users (default: the client id)
  --description <text>      one sentence about the app, shown beside its name
  --logo-url <url>          logo; the user's browser fetches it from this URL
  --website-url <url>       website of the app's maker (https). Users see it, and the next three, when they decide whether
                            to allow the app
  --policy-url <url>        the app's privacy notice (https)
  --terms-url <url>         the app's terms of service (https)
  --contact <text>          e-mail address or telephone number of the maker; repeat the option for several`

const clientAdd: Command = {
  usage: `
Usage: ${HOW} client add --id <id> --redirect-uri <url> --scope "<scopes>"
         (--public | --secret | --jwks-url <url> | --jwks-file <file>)
         [--launch-url <url>] [--post-logout-redirect-uri <url>] [--first-party]
         [--pkce <required|optional>] [--no-iss-parameter]
         [--name <text>] [--description <text>] [--logo-url <url>]
         [--website-url <url>] [--policy-url <url>] [--terms-url <url>] [--contact <text>]
       ${HOW} client add --id <id> (--admin | --admin-read | --audit)
         (--secret | --jwks-url <url> | --jwks-file <file>) [--name <text>]

Options:
  --id <id>                 client id
  --admin                   a program that uses the administration API, not an app: it gets tokens for ${ADMIN_SCOPE} by client
                            credentials
  --admin-read              the same for a program that changes nothing: with ${ADMIN_READ_SCOPE} it may do what auditors may
  --audit                   a FHIR server that adds records to the audit trail, not an app: it gets tokens for
                            ${AUDIT_SCOPE} by client credentials
${describingUsage}`,
  async run(args, io) {
    const id = getRequired(args, 'id')
    const program = readProgramScope(args)
    const {
      authMethod,
      scope = program ?? getRequired(args, 'scope'),
      ...described
    } = readDescription(args, io)
    if (authMethod === undefined)
      throw failMisuse('Expected one of --public, --secret, --jwks-url and --jwks-file')
    const app = { ...CLIENT_DEFAULTS, ...described, authMethod, scope }
    const fault = findClientIdFault(id) ?? findClientFault(app, { isByAdministrator: program !== undefined })
    if (fault) throw describeFault(fault)
    const added = await performCommand(io, `Cannot add app ${id}`, admin => addClient(admin, id, app))
    io.stdout.write(`client_id: ${id}\n`)
    printSecret(added.secret, io)
    noteScopes(scope, io)
    return 0
  },
}

/** The scope of a program that uses the server itself. */
function readProgramScope(args: Arguments): string | undefined {
  const chosen = (['admin', 'admin-read', 'audit'] as const).filter(option => isSet(args, option))
  const [option, other = getOptional(args, 'scope') === undefined ? undefined : 'scope'] = chosen
  if (option === undefined) return undefined
  if (other !== undefined) throw failMisuse(`Unexpected --${other}: --${option} is already set`)
  return { admin: ADMIN_SCOPE, 'admin-read': ADMIN_READ_SCOPE, audit: AUDIT_SCOPE }[option]
}

const CLEARED = Object.fromEntries(
  PLAIN_FIELDS.map(({ option, property }) => [option, { [property]: CLIENT_DEFAULTS[property] }]),
)

const clientSet: Command = {
  usage: `
Usage: ${HOW} client set --id <id> [--<option> <value>]… [--clear <option>]…

Changes only the properties that you name. A new scope revokes the access that users gave the app, within 5 seconds: they
have to consent again. Other changes, including a new secret or new keys, do not affect existing access. Access tokens of a
backend service stay valid until they expire (5 minutes).

Options:
  --id <id>                 client id
${describingUsage}
  --clear <option>          remove the value of an option: ${Object.keys(CLEARED).join(', ')}`,
  positionals: { min: 0, max: 1 },
  async run(args, io) {
    const id = getSubject(args, 'id')
    const described = readDescription(args, io)
    const changes = { ...readCleared(getSeveral(args, 'clear')), ...described }
    if (Object.keys(changes).length === 0) throw failMisuse('Nothing to change: specify an option')
    const { secret } = await performCommand(io, 'Cannot change app', async admin => {
      const result = await changeClient(admin, id, changes)
      if (isFailure(result) && result.fault) throw describeFault(result.fault)
      return result
    })
    io.stdout.write(`Changed app ${id}\n`)
    printSecret(secret, io)
    if (described.scope !== undefined) noteScopes(described.scope, io)
    return 0
  },
}

function readCleared(options: readonly string[]): ClientChanges {
  return Object.assign({}, ...options.map(readClearedOption))
}

function readClearedOption(option: string): ClientChanges {
  const [, changes] = Object.entries(CLEARED).find(([name]) => name === option) ?? []
  if (changes) return changes
  throw failMisuse(`Cannot clear ${option}: expected ${Object.keys(CLEARED).join(', ')}`)
}

function printSecret(secret: string | undefined, io: Io): void {
  if (secret !== undefined) io.stdout.write(`client_secret: ${secret}\n`)
}

/** Prints the scopes that are not granted as written (AUTHORIZE-7). */
function noteScopes(scope: string, io: Io): void {
  const { searchPermission } = readSettings(io.env, io.cwd).fhir
  for (const note of listScopeNotes(scope, searchPermission)) io.stderr.write(`Note: ${note}\n`)
}

function describeFault(fault: ClientFault): CommandFailure {
  const lines = [fault, ...fault.others].map(({ property, value, text }) => {
    const { option } = CLIENT_FIELDS[property]
    return `Cannot use --${option}${value === undefined ? '' : ` ${value}`}: ${text}`
  })
  return failMisuse([...new Set(lines)])
}

function readDescription(args: Arguments, io: Io): ClientChanges {
  const scope = getOptional(args, 'scope')
  return {
    ...Object.fromEntries(
      PLAIN_FIELDS.map(field => [field.property, readOption(args, field)]).filter(
        ([, value]) => value !== undefined,
      ),
    ),
    ...(scope !== undefined && { scope: normalizeScope(scope) }),
    ...(isSet(args, 'first-party') && { approved: true }),
    ...readPkce(args),
    ...readProof(args, io),
  }
}

function readOption(args: Arguments, { kind, option, given }: (typeof PLAIN_FIELDS)[number]) {
  if (kind === 'flag') return isSet(args, option) ? given : undefined
  if (kind === 'text') return getOptional(args, option)
  const values = [...new Set(getSeveral(args, option))]
  return values.length > 0 ? values : undefined
}

function readPkce(args: Arguments): ClientChanges {
  const pkce = getOptional(args, 'pkce')
  if (pkce === undefined) return {}
  if (pkce !== 'required' && pkce !== 'optional')
    throw failMisuse(`Cannot use --pkce ${pkce}: expected required or optional`)
  return { pkceRequired: pkce === 'required' }
}

function readProof(args: Arguments, io: Io): ClientChanges {
  const jwksUrl = getOptional(args, 'jwks-url')
  const file = getOptional(args, 'jwks-file')
  if ([isSet(args, 'public'), isSet(args, 'secret'), jwksUrl, file].filter(Boolean).length > 1)
    throw failMisuse('Expected one of --public, --secret, --jwks-url and --jwks-file')
  if (isSet(args, 'public')) return { authMethod: 'none' }
  if (isSet(args, 'secret')) return { authMethod: 'client_secret', newSecret: true }
  if (jwksUrl !== undefined) return { authMethod: 'private_key_jwt', jwksUrl }
  if (file === undefined) return {}
  return { authMethod: 'private_key_jwt', jwks: readPublicKeys(args, io) }
}

function readPublicKeys(args: Arguments, io: Io): string {
  const keys = readRegisteredKeys(readJsonFile(args, 'jwks-file', io))
  if (isFailure(keys)) throw new CommandFailure(`Cannot use --jwks-file: ${keys.text}`)
  return keys
}

export const commands = { 'client add': clientAdd, 'client set': clientSet }
