import { formatColumns } from '../columns.ts'
import type { Command } from '../command.ts'
import { withStore } from '../with-store.ts'

const PROOFS = { none: 'public', client_secret: 'secret', private_key_jwt: 'keys' } as const

/** `sallyport client list`. */
export const clientList: Command = {
  name: 'client list',
  summary: 'List the registered apps',
  usage: `
Usage: npm run -s sallyport -- client list

To see all properties of an app: client show --id <id>`,
  options: {},
  positionals: { min: 0, max: 0 },
  async run(_args, io) {
    const rows = await withStore(io, ({ db }) =>
      db.selectFrom('client').selectAll().orderBy('client_id').execute(),
    )
    const lines = rows.map(row => [
      row.client_id,
      row.name,
      PROOFS[row.auth_method],
      row.first_party ? 'not asked' : 'asked',
      row.approved ? 'approved' : 'unverified',
      row.launch_url ?? '',
    ])
    io.stdout.write(
      `${formatColumns([['ID', 'NAME', 'PROOF', 'CONSENT', 'STATE', 'LAUNCH URL'], ...lines])}\n`,
    )
    return 0
  },
}
