import { ensureSecret } from '../../config/index.ts'
import { openStore, sealer } from '../../store/index.ts'
import { columns } from '../columns.ts'
import { type Command, CommandFailure } from '../command.ts'
import { settingsOf, withStore } from '../with-store.ts'

/** `sallyport keys rotate`: running servers follow by themselves, and no request fails. */
export const keysRotate: Command = {
  name: 'keys rotate',
  summary: 'Let a new signing key take over',
  usage: `
Usage: npm run -s sallyport -- keys rotate

The new key is published at once and signs some seconds later, when every server knows it. The old one stays published
until the last token that it signed has expired. Keys are also rotated by age: smart.server.key-max-age-days.`,
  options: {},
  positionals: { min: 0, max: 0 },
  async run(_args, io) {
    const { KEY_LEAD_MS, makeNextSigningKey } = await import('../../auth/index.ts')
    const settings = settingsOf(io)
    const store = await openStore(settings.databaseUrl)
    try {
      const now = Date.now()
      const signsFrom = now + KEY_LEAD_MS.byCommand
      const made = await makeNextSigningKey(store, sealer(ensureSecret(settings)), { now, signsFrom })
      if (!made) throw new CommandFailure('Cannot rotate keys: another rotation came first')
      io.stdout.write(`A new key signs from ${new Date(signsFrom).toISOString()}\n`)
      return 0
    } finally {
      await store.close()
    }
  },
}

/** `sallyport keys list`. */
export const keysList: Command = {
  name: 'keys list',
  summary: 'List the signing keys',
  usage: `
Usage: npm run -s sallyport -- keys list`,
  options: {},
  positionals: { min: 0, max: 0 },
  async run(_args, io) {
    const rows = await withStore(io, ({ db }) =>
      db.selectFrom('signing_key').selectAll().orderBy('generation', 'desc').execute(),
    )
    const now = Date.now()
    const signing = rows.find(row => row.signs_from <= now)
    const lines = rows.map(row => [
      row.kid,
      row === signing ? 'signs' : row.signs_from > now ? 'next' : 'retired',
      timeText(row.created_at),
      timeText(row.signs_from),
      row.retired_at === null ? '' : timeText(row.retired_at),
    ])
    io.stdout.write(`${columns([['KID', 'STATE', 'MADE', 'SIGNS FROM', 'RETIRED'], ...lines])}\n`)
    return 0
  },
}

function timeText(at: number): string {
  return new Date(at).toISOString()
}
