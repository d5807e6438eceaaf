import { HOW } from '../../core/index.ts'
import { type Command, getOptional, isSet, printJson } from '../command.ts'
import { parseTime } from '../parse-time.ts'
import { findProblems, formatProblems } from '../problems.ts'
import { withStore } from '../with-store.ts'

const problems: Command = {
  usage: `
Usage: ${HOW} problems [--client <app>] [--since <when>] [--json]

Prints the requests of apps that were refused, that failed, or that did not give the app what it asked for: a code without a
state or for fewer scopes, a search of another patient. Each has its cause and what to change, as /activity explains it. Equal
ones are printed once, with the time of the last one. If there are many, only the newest are printed. No token and no name of
a patient is printed.

Options:
  --client <app>   only those of this app: its id
  --since <when>   only later ones: 90s, 15m, 2h, 7d, or a date (2026-11-15, 2026-11-15T04:00Z)
  --json           print JSON: items with at, kind, status, app, launch, request, cause, reason (the text of
                   the server), action, scope (of the token) and compared (name, sent, expected, origin); the newest 1,000`,
  async run(args, io) {
    const since = getOptional(args, 'since')
    const filter = {
      since: since === undefined ? 0 : parseTime('since', since, Date.now()),
      client: getOptional(args, 'client'),
    }
    const found = await withStore(io, (store, settings) => findProblems(settings, store, filter))
    if (isSet(args, 'json')) printJson(io, { items: found })
    else io.stdout.write(formatProblems(found))
    return 0
  },
}

export const commands = { problems }
