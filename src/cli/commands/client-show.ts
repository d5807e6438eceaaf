import { getSubject } from '../arguments.ts'
import type { ClientRow } from '../client/registration.ts'
import { formatColumns } from '../columns.ts'
import { type Command, CommandFailure } from '../command.ts'
import { withStore } from '../with-store.ts'

/** `sallyport client show`: every field, by the name of its option. */
export const clientShow: Command = {
  name: 'client show',
  summary: 'Show the properties of a registered app',
  usage: `
Usage: npm run -s sallyport -- client show --id <id>`,
  options: { id: { type: 'string' } },
  positionals: { min: 0, max: 1 },
  async run(args, io) {
    const id = getSubject(args, 'id')
    const client = await withStore(io, ({ db }) =>
      db.selectFrom('client').selectAll().where('client_id', '=', id).executeTakeFirst(),
    )
    if (!client) throw new CommandFailure(`Cannot show client: there is no client ${id}`)
    io.stdout.write(`${formatColumns(linesOf(client))}\n`)
    return 0
  },
}

function linesOf(client: ClientRow): readonly (readonly string[])[] {
  return [
    ['id', client.client_id],
    ['name', client.name],
    ...given('description', client.description),
    ...given('logo-url', client.logo_url),
    ...proofOf(client),
    ['consent', client.first_party ? 'not asked (first-party)' : 'asked'],
    ['state', client.approved ? 'approved' : `unverified: client approve ${client.client_id} approves it`],
    ...given('pkce', client.pkce_required ? null : 'optional'),
    ...given('iss-parameter', client.iss_parameter ? null : 'not sent'),
    ...several('redirect-uri', client.redirect_uris),
    ...several('post-logout-redirect-uri', client.post_logout_redirect_uris),
    ...given('launch-url', client.launch_url),
    ...client.scope.split(' ').map((scope, at) => [at === 0 ? 'scope' : '', scope]),
    ['registered', new Date(client.created_at).toISOString()],
  ]
}

function proofOf({ auth_method, jwks, jwks_url, pkce_required }: ClientRow): readonly (readonly string[])[] {
  switch (auth_method) {
    case 'none':
      return [['proof', pkce_required ? 'public, with PKCE' : 'public']]
    case 'client_secret':
      return [['proof', 'secret, kept as a hash']]
    case 'private_key_jwt':
      return [['proof', 'keys'], ...given('jwks-url', jwks_url), ...given('key', kids(jwks))]
  }
}

function kids(jwks: string | null): string | null {
  const { keys = [] }: { keys?: readonly { readonly kid?: string; readonly kty?: string }[] } =
    jwks === null ? {} : JSON.parse(jwks)
  return keys.length === 0 ? null : keys.map(({ kid, kty }) => `${kid} (${kty})`).join(', ')
}

function given(name: string, value: string | null): readonly (readonly string[])[] {
  return value === null ? [] : [[name, value]]
}

function several(name: string, json: string): readonly (readonly string[])[] {
  const values: readonly string[] = JSON.parse(json)
  return values.map((value, at) => [at === 0 ? name : '', value])
}
