import { getSubject } from '../arguments.ts'
import { type Command, CommandFailure } from '../command.ts'
import { administer } from '../with-store.ts'

/** `sallyport client approve`: an administrator vouches for an app that registered itself. */
export const clientApprove: Command = {
  name: 'client approve',
  summary: 'Approve an app that registered itself',
  usage: `
Usage: npm run -s sallyport -- client approve --id <id>

An app that registered itself (POST /oauth2/register without the initial access token) is unverified: pages mark it as
unverified, and the auth server redirects errors to it only after the user has made a decision. Check the URLs and scopes of
the app first: client show --id <id>`,
  options: { id: { type: 'string' } },
  positionals: { min: 0, max: 1 },
  async run(args, io) {
    const id = getSubject(args, 'id')
    await administer(io, `client approve ${id}`, async trx => {
      const approved = await trx
        .updateTable('client')
        .set({ approved: true })
        .where('client_id', '=', id)
        .returning('client_id')
        .executeTakeFirst()
      if (!approved) throw new CommandFailure(`Cannot approve client: there is no client ${id}`)
    })
    io.stdout.write(`Approved client ${id}\n`)
    return 0
  },
}
