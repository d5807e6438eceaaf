import type { Transaction } from 'kysely'
import type { Schema } from '../../store/index.ts'
import { getSeveral, getSubject } from '../arguments.ts'
import {
  checkWhole,
  type Described,
  describingOptions,
  describingUsage,
  readDescription,
} from '../client/registration.ts'
import { noteScopes } from '../client/scope.ts'
import { type Command, CommandFailure, failMisuse } from '../command.ts'
import { administer } from '../with-store.ts'

const CLEARED: Readonly<Record<string, Described>> = {
  'redirect-uri': { redirect_uris: '[]' },
  'post-logout-redirect-uri': { post_logout_redirect_uris: '[]' },
  'launch-url': { launch_url: null },
  'first-party': { first_party: false },
  'no-iss-parameter': { iss_parameter: true },
  description: { description: null },
  'logo-url': { logo_url: null },
}

/** `sallyport client set`: changes what is named and leaves the rest. Running servers follow at once. */
export const clientSet: Command = {
  name: 'client set',
  summary: 'Change a registered app',
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
    if (Object.keys(changes).length === 0) throw failMisuse('Nothing to change: name an option')
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
