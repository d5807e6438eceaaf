import { subject } from '../arguments.ts'
import { type Command, CommandFailure } from '../command.ts'
import { withStore } from '../with-store.ts'

/** `sallyport client remove`. Its grants, codes and refresh tokens go with it. */
export const clientRemove: Command = {
  name: 'client remove',
  summary: 'Remove an app, and all that it was granted',
  usage: `
Usage: npm run -s sallyport -- client remove --id <id>

Access tokens that are out end within their lifetime (300 s by default).`,
  options: { id: { type: 'string' } },
  positionals: { min: 0, max: 1 },
  async run(args, io) {
    const id = subject(args, 'id')
    const { numDeletedRows } = await withStore(io, ({ db }) =>
      db.deleteFrom('client').where('client_id', '=', id).executeTakeFirst(),
    )
    if (numDeletedRows === 0n) throw new CommandFailure(`Cannot remove client: there is no client ${id}`)
    io.stdout.write(`Removed client ${id}\n`)
    return 0
  },
}
