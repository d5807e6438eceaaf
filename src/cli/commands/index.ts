import type { NamedCommand } from '../command.ts'
import { groups, type Load, table } from './table.ts'

/** The commands of `table.ts`, which is where a command is added, and `completion`, which reads that table itself. */
const completion = {
  summary: 'Print a script that completes commands in bash, zsh or fish',
  load: () => import('./completion.ts'),
}

const commands = { ...table, completion } satisfies typeof table &
  Record<string, { readonly summary: string; readonly load: Load }>

export type CommandName = keyof typeof commands

export const commandNames = Object.keys(commands) as readonly CommandName[]

/** The commands by their headings. */
export const commandGroups = Object.entries({
  ...groups,
  Operation: { ...groups.Operation, completion },
}).map(([title, group]) => ({ title, names: Object.keys(group) as readonly CommandName[] }))

export function getSummary(name: CommandName): string {
  return commands[name].summary
}

export async function loadCommand(name: CommandName): Promise<NamedCommand> {
  const { summary, load } = commands[name]
  const file: Awaited<ReturnType<Load>> = await load()
  const command = file.commands[name]
  if (!command) throw new Error(`No file has the command ${name}`)
  return { name, summary, ...command }
}
