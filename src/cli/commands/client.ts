import {
  type ClientRow,
  describeClient,
  describeClientState,
  findClientRow,
  PLAIN_FIELDS,
  summarizeScopes,
} from '../../auth/index.ts'
import { HOW } from '../../core/index.ts'
import { type Command, formatColumns, getSubject, isSet, printJson } from '../command.ts'
import { performCommand } from '../with-store.ts'

const clientShow: Command = {
  usage: `
Usage: ${HOW} client show --id <id> [--json]

Options:
  --json  print JSON, as the administration API returns it`,
  positionals: { min: 0, max: 1 },
  async run(args, io) {
    const id = getSubject(args, 'id')
    const client = await performCommand(io, 'Cannot show app', admin => findClientRow(admin, id))
    if (isSet(args, 'json')) printJson(io, describeClient(client))
    else io.stdout.write(`${formatColumns(listRows(client))}\n`)
    return 0
  },
}

/** Properties to which the server sends a browser. */
const PLACES: readonly string[] = ['redirectUris', 'postLogoutRedirectUris', 'launchUrl']

/** Its properties by the options that set them. */
function listRows(client: ClientRow): readonly (readonly string[])[] {
  const metadata = describeClient(client)
  const list = (isPlace: boolean) =>
    PLAIN_FIELDS.filter(
      ({ kind, property }) => kind !== 'flag' && PLACES.includes(property) === isPlace,
    ).flatMap(({ option, member }) => listValues(option, metadata[member]))
  const isApproved = client.approved && !client.for_loopback
  return [
    ['id', client.client_id],
    ...list(false),
    ...listProofRows(client),
    ['consent', client.first_party ? 'not asked (first-party)' : 'asked'],
    [
      'state',
      `${describeClientState(client)}${isApproved ? '' : `; to approve it: client approve ${client.client_id}`}`,
    ],
    ...(client.pkce_required ? [] : [['pkce', 'optional']]),
    ...(client.iss_parameter ? [] : [['iss-parameter', 'not sent']]),
    ...list(true),
    ['permissions', summarizeScopes(client.scope, 'its users')],
    ...listValues('scope', client.scope.split(' ')),
    ['registered', new Date(client.created_at).toISOString()],
  ]
}

function listProofRows({
  auth_method,
  jwks,
  jwks_url,
  pkce_required,
}: ClientRow): readonly (readonly string[])[] {
  switch (auth_method) {
    case 'none':
      return [['authentication', pkce_required ? 'public, with PKCE' : 'public']]
    case 'client_secret':
      return [['authentication', 'secret, stored as a hash']]
    case 'private_key_jwt':
      return [
        ['authentication', 'keys'],
        ...listValues('jwks-url', jwks_url),
        ...listValues('key', formatKeyIds(jwks)),
      ]
  }
}

function formatKeyIds(jwks: string | null): string | undefined {
  const { keys = [] }: { keys?: readonly { readonly kid?: string; readonly kty?: string }[] } =
    jwks === null ? {} : JSON.parse(jwks)
  return keys.length === 0 ? undefined : keys.map(({ kid, kty }) => `${kid} (${kty})`).join(', ')
}

/** A row for each value, the first with the name. */
function listValues(name: string, value: unknown): readonly (readonly string[])[] {
  return [value ?? []].flat().map((one, at) => [at === 0 ? name : '', String(one)])
}

export const commands = { 'client show': clientShow }
