import type { Sealer, Store } from '../../store/index.ts'
import {
  type Arguments,
  type Command,
  CommandFailure,
  type ExitCode,
  failMisuse,
  formatColumns,
  getOptional,
  getSubject,
  type Io,
  isSet,
} from '../command.ts'
import { loadSettings, recordCommand, withSealer, withStore } from '../with-store.ts'

export const keysRotate: Command = {
  usage: `
Usage: npm run -s sallyport -- keys rotate

Publishes a new key at once. The key signs tokens a few seconds later, when every server has fetched it. The old key stays
published until the last token that it signed has expired. The auth server also rotates keys by age
(smart.server.key-max-age-days).`,
  options: {},
  positionals: { min: 0, max: 0 },
  async run(_args, io) {
    const { KEY_LEAD_MS, makeNextSigningKey } = await import('../../auth/index.ts')
    const now = Date.now()
    const signsFrom = now + KEY_LEAD_MS.byCommand
    const made = await withSealer(loadSettings(io), async (store, seal) => {
      await needSameSecret(store, seal, 'Cannot rotate keys')
      const record = recordCommand(io, store, 'keys rotate')
      return makeNextSigningKey(store, seal, { now, signsFrom, record })
    })
    if (!made) throw new CommandFailure('Cannot rotate keys: another rotation finished first')
    io.stdout.write(`A new key signs from ${timeText(signsFrom)}\n`)
    return 0
  },
}

export const keysWithdraw: Command = {
  usage: `
Usage: npm run -s sallyport -- keys withdraw (--kid <kid> | --all)

Every server refuses tokens signed with the removed key within 5 seconds. A new key signs at once. Requests may fail for a
few seconds, until every server has fetched the new key. Apps then renew their tokens. If no key leaked, use keys rotate.

Options:
  --kid <kid>  the key to remove
  --all        remove all keys, including the app server's, whatever SMART_SECRET encrypted them. Use this if SMART_SECRET
               leaked or was lost: stop the servers, set a new SMART_SECRET, run this command, start the servers. It
               ends all sessions of the app server.`,
  options: { kid: { type: 'string' }, all: { type: 'boolean' } },
  positionals: { min: 0, max: 1 },
  async run(args, io) {
    if (isSet(args, 'all')) return withdrawAll(args, io)
    const { withdrawSigningKey } = await import('../../auth/index.ts')
    const kid = getSubject(args, 'kid')
    const withdrawn = await withSealer(loadSettings(io), async (store, seal) => {
      await needSameSecret(store, seal, 'Cannot withdraw key')
      const record = recordCommand(io, store, `keys withdraw ${kid}`)
      return withdrawSigningKey(store, seal, { kid, now: Date.now(), record })
    })
    if (!withdrawn) throw new CommandFailure(`Cannot withdraw key: there is no key ${kid}`)
    io.stdout.write(`Withdrew key ${kid}; a new key signs\n`)
    return 0
  },
}

async function withdrawAll(args: Arguments, io: Io): Promise<ExitCode> {
  if (args.positionals.length > 0 || getOptional(args, 'kid') !== undefined)
    throw failMisuse('Unexpected key: --all is already set')
  const { withdrawEveryKey } = await import('../../auth/index.ts')
  await withSealer(loadSettings(io), (store, seal) =>
    withdrawEveryKey(store, seal, Date.now(), recordCommand(io, store, 'keys withdraw --all')),
  )
  io.stdout.write('Withdrew all keys; a new key signs\n')
  return 0
}

export const keysList: Command = {
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
    io.stdout.write(`${formatColumns([['KID', 'STATE', 'MADE', 'SIGNS FROM', 'RETIRED'], ...lines])}\n`)
    return 0
  },
}

async function needSameSecret(store: Store, seal: Sealer, refusal: string): Promise<void> {
  const { canOpenSigningKeys } = await import('../../auth/index.ts')
  if (!(await canOpenSigningKeys(store, seal)))
    throw new CommandFailure(
      `${refusal}: the keys are encrypted with another SMART_SECRET. Set the SMART_SECRET of the servers, or see: keys withdraw --help`,
    )
}

function timeText(at: number): string {
  return new Date(at).toISOString()
}
