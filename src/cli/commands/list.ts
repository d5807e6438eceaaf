import { LIST_COMMANDS, type ListCommand } from '../../auth/index.ts'
import { HOW } from '../../core/index.ts'
import { type Command, formatColumns, isSet, printJson } from '../command.ts'
import { performCommand } from '../with-store.ts'
import { formatOptions, listOptions, listOptionValues, readOptionFilters } from './filters.ts'

/** The commands that print the lists of administration. Their options are the filters of the list. */
export const commands = Object.fromEntries(LIST_COMMANDS.map(list => [list.name, defineListing(list)]))

export function defineListing({ name, nouns, about, more, none, filters, read }: ListCommand): Command {
  const options = [
    ...listOptions(filters),
    { usage: '--json', text: 'Print JSON, as the administration API returns it' },
  ]
  const texts = [
    `\nUsage: ${HOW} ${name} ${options.map(({ usage }) => `[${usage}]`).join(' ')}`,
    about,
    `Options:\n${formatOptions(options)}`,
    more,
  ]
  return {
    usage: texts.filter(text => text !== undefined).join('\n\n'),
    listValues: async () => listOptionValues(filters),
    async run(args, io) {
      const wanted = readOptionFilters(filters, args)
      const { json, table } = await performCommand(io, `Cannot list ${nouns}`, admin => read(admin, wanted))
      if (isSet(args, 'json')) printJson(io, json)
      else if (none !== undefined && table.length === 1) io.stderr.write(`${none}\n`)
      else io.stdout.write(`${formatColumns(table)}\n`)
      return 0
    },
  }
}
