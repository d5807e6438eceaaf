import { getRequired } from '../arguments.ts'
import { checkWhole, describingOptions, describingUsage, readDescription } from '../client/registration.ts'
import { noteScopes } from '../client/scope.ts'
import { type Command, CommandFailure, failMisuse } from '../command.ts'
import { administer } from '../with-store.ts'

/** The client id in the portal's own tokens (PORTAL-6). No client may be registered with it. */
const RESERVED_ID = 'sallyport-portal'

function checkId(id: string): string {
  if (!/^[\x21-\x7e]{1,200}$/.test(id))
    throw failMisuse('Cannot use --id: expected at most 200 printable characters without spaces')
  if (id === RESERVED_ID) throw failMisuse(`Cannot use --id ${RESERVED_ID}: it is the portal's own`)
  return id
}

/** `sallyport client add`. A secret is made here, printed once, and kept only as a hash. */
export const clientAdd: Command = {
  name: 'client add',
  summary: 'Register an app',
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
