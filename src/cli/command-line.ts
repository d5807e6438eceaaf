import { parseArgs } from 'node:util'
import { SettingsError } from '../config/index.ts'
import { version } from '../web/index.ts'
import {
  type Arguments,
  type Command,
  CommandFailure,
  type ExitCode,
  failMisuse,
  formatColumns,
  type Io,
} from './command.ts'
import { type CommandName, commandNames, loadCommand } from './commands/index.ts'

/** Every failure becomes a line on stderr and an exit code. */
export async function runCommandLine(argv: readonly string[], io: Io): Promise<ExitCode> {
  try {
    return await dispatch(argv, io)
  } catch (error) {
    for (const line of linesOf(error)) io.stderr.write(`${line}\n`)
    if (isUnexpected(error) && io.env.SMART_LOG_LEVEL === 'debug') io.stderr.write(`${String(error.stack)}\n`)
    return error instanceof CommandFailure ? error.exitCode : 1
  }
}

async function dispatch(argv: readonly string[], io: Io): Promise<ExitCode> {
  const [first, second] = argv
  if (first === '--version' || first === '-V') return print(io, `${version}\n`)
  if (first === undefined || first === '--help' || first === '-h' || first === 'help') {
    return print(io, await formatOverview(await allCommands()), first === undefined ? 2 : 0)
  }
  const name =
    commandNames.find(known => known === `${first} ${second}`) ?? commandNames.find(known => known === first)
  if (name === undefined) return unknownCommand(first, second, io)
  return runCommand(await loadCommand(name), argv.slice(name.split(' ').length), io)
}

async function runCommand(command: Command, args: readonly string[], io: Io): Promise<ExitCode> {
  const parsed = parse(command, args)
  if (parsed.values.help === true) return print(io, formatCommandHelp(command))
  const { min, max } = command.positionals
  const count = parsed.positionals.length
  if (count > max)
    throw failMisuse(`Unexpected argument ${parsed.positionals[max]}: see ${HOW} ${command.name} --help`)
  if (count < min) throw failMisuse(`Missing argument: see ${HOW} ${command.name} --help`)
  return command.run(parsed, io)
}

function parse(command: Command, args: readonly string[]): Arguments {
  try {
    return parseArgs({
      args: [...args],
      options: { ...command.options, help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
      strict: true,
    })
  } catch (error) {
    // The first sentence names the option; the rest of Node's message explains `--`.
    const reason = error instanceof Error ? error.message.split('. ')[0] : String(error)
    throw failMisuse(`${reason}: see ${HOW} ${command.name} --help`)
  }
}

async function unknownCommand(first: string, second: string | undefined, io: Io): Promise<ExitCode> {
  const group = commandNames.filter(name => name.startsWith(`${first} `))
  if (group.length === 0) throw failMisuse(`Unknown command ${first}: see ${HOW} --help`)
  if (second === undefined || second === '--help' || second === '-h') {
    return print(
      io,
      groupHelp(first, await Promise.all(group.map(loadCommand))),
      second === undefined ? 2 : 0,
    )
  }
  throw failMisuse(`Unknown command ${first} ${second}: see ${HOW} ${first} --help`)
}

function allCommands(): Promise<readonly Command[]> {
  return Promise.all(commandNames.map((name: CommandName) => loadCommand(name)))
}

function print(io: Io, text: string, exitCode: ExitCode = 0): ExitCode {
  io.stdout.write(text)
  return exitCode
}

function linesOf(error: unknown): readonly string[] {
  return error instanceof SettingsError ? error.problems : [lineOf(error)]
}

/** One line without a stack trace (START-7). */
function lineOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return (message.split('\n')[0] ?? '').trim() || 'Failed for an unknown reason'
}

function isUnexpected(error: unknown): error is Error {
  return error instanceof Error && !(error instanceof CommandFailure) && !(error instanceof SettingsError)
}

export const HOW = 'npm run -s sallyport --'

async function formatOverview(commands: readonly Command[]): Promise<string> {
  return `Sallyport: a SMART-on-FHIR launch and authorization layer for any FHIR R4 server

Usage: ${HOW} <command> [options]

${list(commands)}

Each command has --help. --version prints the version.
`
}

function groupHelp(group: string, commands: readonly Command[]): string {
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
