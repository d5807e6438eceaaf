import { randomToken, sha256 } from '../../store/index.ts'
import { type Proof, readRegistration } from '../client/registration.ts'
import { type Command, CommandFailure } from '../command.ts'
import { withStore } from '../with-store.ts'

/** `sallyport client add`. A secret is made here, printed once, and kept only as a hash. */
export const clientAdd: Command = {
  name: 'client add',
  summary: 'Register an app',
  usage: `
Usage: npm run -s sallyport -- client add --id <id> --redirect-uri <address> --scope "<scopes>"
         (--public | --secret | --jwks-url <address> | --jwks-file <file>)
         [--launch-url <address>] [--first-party] [--name <text>] [--description <text>] [--logo-url <address>]

Options:
  --id <id>                 client id
  --redirect-uri <address>  where codes are sent, compared exactly; may be given several times; https, http on loopback,
                            or a private-use scheme (com.example.app:/callback); not needed with only system/ scopes
  --scope "<scopes>"        the scopes that it may have at most, separated by spaces
  --public                  a browser or native app, with PKCE and without secret
  --secret                  a confidential app; its secret is made and printed once
  --jwks-url <address>      a confidential app that signs with its keys, which are published there (not fetched now)
  --jwks-file <file>        the same with a file of public keys
  --launch-url <address>    where the portal sends the browser to launch it
  --first-party             ours: its users are not asked for consent
  --name <text>             name that is shown; the id unless given
  --description <text>      one sentence about it, shown beside the name
  --logo-url <address>      its logo; the browser of whoever looks at it fetches it from there`,
  options: {
    id: { type: 'string' },
    'redirect-uri': { type: 'string', multiple: true },
    'launch-url': { type: 'string' },
    scope: { type: 'string' },
    public: { type: 'boolean' },
    secret: { type: 'boolean' },
    'jwks-url': { type: 'string' },
    'jwks-file': { type: 'string' },
    'first-party': { type: 'boolean' },
    name: { type: 'string' },
    description: { type: 'string' },
    'logo-url': { type: 'string' },
  },
  positionals: { min: 0, max: 0 },
  async run(args, io) {
    const client = await readRegistration(args, io.cwd)
    const secret = client.proof.kind === 'secret' ? randomToken() : undefined
    const added = await withStore(io, ({ db }) =>
      db
        .insertInto('client')
        .values({
          client_id: client.id,
          name: client.name,
          description: client.description ?? null,
          logo_url: client.logoUrl ?? null,
          redirect_uris: JSON.stringify(client.redirectUris),
          launch_url: client.launchUrl ?? null,
          scope: client.scope,
          first_party: client.firstParty,
          created_at: Date.now(),
          ...proofColumns(client.proof, secret),
        })
        .onConflict(conflict => conflict.column('client_id').doNothing())
        .returning('client_id')
        .executeTakeFirst(),
    )
    if (!added) throw new CommandFailure(`Cannot add client ${client.id}: the id is taken`)
    io.stdout.write(`client_id: ${client.id}\n`)
    if (secret !== undefined) io.stdout.write(`client_secret: ${secret}\n`)
    return 0
  },
}

function proofColumns(proof: Proof, secret: string | undefined) {
  switch (proof.kind) {
    case 'public':
      return { auth_method: 'none' } as const
    case 'secret':
      return { auth_method: 'client_secret', secret_hash: sha256(secret ?? '') } as const
    case 'jwks-url':
      return { auth_method: 'private_key_jwt', jwks_url: proof.url } as const
    case 'jwks':
      return { auth_method: 'private_key_jwt', jwks: proof.jwks } as const
  }
}
