import type { ClientRow } from '../../auth/index.ts'
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
    const { describeClient, describeClientState, findClientRow, summarizeScopes } = await import(
      '../../auth/index.ts'
    )
    const client = await performCommand(io, 'Cannot show app', admin => findClientRow(admin, id))
    if (isSet(args, 'json')) printJson(io, describeClient(client))
    else {
      const words = {
        state: describeClientState(client),
        permissions: summarizeScopes(client.scope, 'its users'),
      }
      io.stdout.write(`${formatColumns(listRows(client, words))}\n`)
    }
    return 0
  },
}

function listRows(
  client: ClientRow,
  { state, permissions }: Readonly<Record<'state' | 'permissions', string>>,
): readonly (readonly string[])[] {
  return [
    ['id', client.client_id],
    ['name', client.name],
    ...listIfSet('description', client.description),
    ...listIfSet('logo-url', client.logo_url),
    ...listIfSet('website-url', client.website_url),
    ...listIfSet('policy-url', client.policy_url),
    ...listIfSet('terms-url', client.terms_url),
    ...listValues('contact', client.contacts),
    ...listProofRows(client),
    ['consent', client.first_party ? 'not asked (first-party)' : 'asked'],
    [
      'state',
      state +
        (client.approved && !client.for_loopback
          ? ''
          : `; to approve it: client approve ${client.client_id}`),
    ],
    ...listIfSet('pkce', client.pkce_required ? null : 'optional'),
    ...listIfSet('iss-parameter', client.iss_parameter ? null : 'not sent'),
    ...listValues('redirect-uri', client.redirect_uris),
    ...listValues('post-logout-redirect-uri', client.post_logout_redirect_uris),
    ...listIfSet('launch-url', client.launch_url),
    ['permissions', permissions],
    ...client.scope.split(' ').map((scope, at) => [at === 0 ? 'scope' : '', scope]),
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
        ...listIfSet('jwks-url', jwks_url),
        ...listIfSet('key', formatKeyIds(jwks)),
      ]
  }
}

function formatKeyIds(jwks: string | null): string | null {
  const { keys = [] }: { keys?: readonly { readonly kid?: string; readonly kty?: string }[] } =
    jwks === null ? {} : JSON.parse(jwks)
  return keys.length === 0 ? null : keys.map(({ kid, kty }) => `${kid} (${kty})`).join(', ')
}

function listIfSet(name: string, value: string | null): readonly (readonly string[])[] {
  return value === null ? [] : [[name, value]]
}

function listValues(name: string, json: string): readonly (readonly string[])[] {
  const values: readonly string[] = JSON.parse(json)
  return values.map((value, at) => [at === 0 ? name : '', value])
}

export const commands = { 'client show': clientShow }
