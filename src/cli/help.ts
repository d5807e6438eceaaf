import { formatColumns } from './columns.ts'
import type { Command } from './command.ts'

/** How the command line is called from the folder of the project. */
export const HOW = 'npm run -s sallyport --'

/** The text of `--help`. */
export async function formatOverview(commands: readonly Command[]): Promise<string> {
  return `Sallyport: a SMART-on-FHIR launch and authorization layer for any FHIR R4 server

Usage: ${HOW} <command> [options]

${list(commands)}

Each command has --help. --version prints the version.
`
}

/** The text of `clinician --help`: what can be done with clinicians. */
export function groupHelp(group: string, commands: readonly Command[]): string {
  return `Usage: ${HOW} ${group} <command> [options]

${list(commands)}

Each command has --help.
`
}

/** The text of `clinician add --help`. */
export function formatCommandHelp(command: Command): string {
  return `${command.summary}\n\n${command.usage.trim()}\n`
}

function list(commands: readonly Command[]): string {
  return formatColumns(commands.map(command => [`  ${command.name}`, command.summary]))
}
