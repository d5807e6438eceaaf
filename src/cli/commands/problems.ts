import { HOW } from '../../core/index.ts'
import { type Command, isSet, printJson } from '../command.ts'
import { findProblems, formatProblems } from '../problems.ts'
import { withStore } from '../with-store.ts'

const problems: Command = {
  usage: `
Usage: ${HOW} problems [--json]

Prints the requests of apps that were refused, and the codes for fewer scopes than the app requested, each with its cause and
what to change, as /activity explains them. Equal ones are printed once, with the time of the last; of many, the newest. No token and no name of a patient
is printed.

Options:
  --json   print JSON: items with at, kind, status, app, launch, request, cause, action and compared (name, sent,
           expected, origin); the newest 1,000`,
  async run(args, io) {
    const found = await withStore(io, (store, settings) => findProblems(settings, store, 0))
    if (isSet(args, 'json')) printJson(io, { items: found })
    else io.stdout.write(formatProblems(found))
    return 0
  },
}

export const commands = { problems }
