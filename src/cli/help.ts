import { type Command, formatColumns } from './command.ts'

export const HOW = 'npm run -s sallyport --'

export async function formatOverview(commands: readonly Command[]): Promise<string> {
  return `Sallyport: a SMART-on-FHIR launch and authorization layer for any FHIR R4 server

Usage: ${HOW} <command> [options]

${list(commands)}

Each command has --help. --version prints the version.
`
}

export function groupHelp(group: string, commands: readonly Command[]): string {
  return `Usage: ${HOW} ${group} <command> [options]

${list(commands)}

Each command has --help.
`
}

export function formatCommandHelp(command: Command): string {
  return `${command.summary}\n\n${command.usage.trim()}\n`
}

function list(commands: readonly Command[]): string {
  return formatColumns(commands.map(command => [`  ${command.name}`, command.summary]))
}
