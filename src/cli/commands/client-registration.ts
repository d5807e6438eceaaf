import type { Transaction } from 'kysely'
import type { Schema } from '../../store/index.ts'
import {
  checkWhole,
  type Described,
  describingOptions,
  describingUsage,
  noteScopes,
  readDescription,
} from '../client-registration.ts'
import { type Command, CommandFailure, failMisuse, getRequired, getSeveral, getSubject } from '../command.ts'
import { administer } from '../with-store.ts'

/** The client id in the portal's own tokens (PORTAL-6). No client may be registered with it. */
const RESERVED_ID = 'sallyport-portal'

function checkId(id: string): string {
  if (!/^[\x21-\x7e]{1,200}$/.test(id))
    throw failMisuse('Cannot use --id: expected at most 200 printable characters without spaces')
  if (id === RESERVED_ID) throw failMisuse(`Cannot use --id ${RESERVED_ID}: it is reserved for the portal`)
  return id
}

export const clientAdd: Command = {
  usage: `
Usage: npm run -s sallyport -- client add --id <id> --redirect-uri <url> --scope "<scopes>"
         (--public | --secret | --jwks-url <url> | --jwks-file <file>)
         [--launch-url <url>] [--post-logout-redirect-uri <url>] [--first-party]
         [--pkce <required|optional>] [--no-iss-parameter]
         [--name <text>] [--description <text>] [--logo-url <url>]

Options:
  --id <id>                 client id
${describingUsage}`,
  options: { id: { type: 'string' }, ...describingOptions },
  positionals: { min: 0, max: 0 },
  async run(args, io) {
    const client_id = checkId(getRequired(args, 'id'))
    const scope = getRequired(args, 'scope')
    const { described, secret } = await readDescription(args, io.cwd)
    const { auth_method } = described
    if (auth_method === undefined)
      throw failMisuse('Expected one of --public, --secret, --jwks-url and --jwks-file')
    const client = {
      redirect_uris: '[]',
      first_party: false,
      name: client_id,
      scope,
      ...described,
      auth_method,
    }
    checkWhole(client)
    await administer(io, `client add ${client_id}`, async trx => {
      const added = await trx
        .insertInto('client')
        .values({ ...client, client_id, created_at: Date.now() })
        .onConflict(conflict => conflict.column('client_id').doNothing())
        .returning('client_id')
        .executeTakeFirst()
      if (!added) throw new CommandFailure(`Cannot add client ${client_id}: the id is taken`)
      const { storeOrigins } = await import('../../auth/index.ts')
      await storeOrigins(trx, client_id)
    })
    io.stdout.write(`client_id: ${client_id}\n`)
    if (secret !== undefined) io.stdout.write(`client_secret: ${secret}\n`)
    noteScopes(client.scope, io)
    return 0
  },
}

const CLEARED: Readonly<Record<string, Described>> = {
  'redirect-uri': { redirect_uris: '[]' },
  'post-logout-redirect-uri': { post_logout_redirect_uris: '[]' },
  'launch-url': { launch_url: null },
  'first-party': { first_party: false },
  'no-iss-parameter': { iss_parameter: true },
  description: { description: null },
  'logo-url': { logo_url: null },
}

export const clientSet: Command = {
  usage: `
Usage: npm run -s sallyport -- client set --id <id> [--<option> <value>]… [--clear <option>]…

Changes only the properties that you name. A new scope revokes the access that users gave the app, within 5 seconds: they
have to consent again. Other changes, including a new secret or new keys, do not affect existing access. Access tokens of a
backend service stay valid until they expire (5 minutes).

Options:
  --id <id>                 client id
${describingUsage}
  --clear <option>          remove the value of an option: ${Object.keys(CLEARED).join(', ')}`,
  options: { id: { type: 'string' }, ...describingOptions, clear: { type: 'string', multiple: true } },
  positionals: { min: 0, max: 1 },
  async run(args, io) {
    const id = getSubject(args, 'id')
    const { described, secret } = await readDescription(args, io.cwd)
    const changes = { ...cleared(getSeveral(args, 'clear')), ...described }
    if (Object.keys(changes).length === 0) throw failMisuse('Nothing to change: specify an option')
    await administer(io, `client set ${id}`, trx => change(trx, id, changes))
    io.stdout.write(`Changed client ${id}\n`)
    if (secret !== undefined) io.stdout.write(`client_secret: ${secret}\n`)
    if (described.scope !== undefined) noteScopes(described.scope, io)
    return 0
  },
}

function cleared(options: readonly string[]): Described {
  return Object.assign({}, ...options.map(clearing))
}

function clearing(option: string): Described | undefined {
  if (Object.hasOwn(CLEARED, option)) return CLEARED[option]
  throw failMisuse(`Cannot clear ${option}: expected ${Object.keys(CLEARED).join(', ')}`)
}

async function change(trx: Transaction<Schema>, id: string, changes: Described): Promise<void> {
  const client = await trx.selectFrom('client').selectAll().where('client_id', '=', id).executeTakeFirst()
  if (!client) throw new CommandFailure(`Cannot change client: there is no client ${id}`)
  checkWhole({ ...client, ...changes })
  const { storeOrigins } = await import('../../auth/index.ts')
  await trx.updateTable('client').set(changes).where('client_id', '=', id).execute()
  await storeOrigins(trx, id)
  if (changes.scope === undefined || changes.scope === client.scope) return
  await trx
    .updateTable('grant')
    .set({ revoked_at: Date.now() })
    .where('client_id', '=', id)
    .where('revoked_at', 'is', null)
    .execute()
}
