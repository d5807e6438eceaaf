import { parseArgs } from 'node:util'
import { describeError, escapeLines, findNearest, HOW } from '../core/index.ts'
import {
  type Arguments,
  CommandFailure,
  type ExitCode,
  failMissing,
  failMisuse,
  formatColumns,
  type Io,
  type NamedCommand,
  type Output,
} from './command.ts'
import { type CommandName, commandGroups, commandNames, getSummary, loadCommand } from './commands/table.ts'
import { withTicker } from './ticker.ts'
import { readOptions } from './usage.ts'
import { wrapHelp } from './wrap-help.ts'

/** Every failure becomes a line on stderr, or one for each cause, and an exit code. */
export async function runCommandLine(argv: readonly string[], given: Io): Promise<ExitCode> {
  const io = { ...given, stdout: escapeOutput(given.stdout), stderr: escapeOutput(given.stderr) }
  try {
    return await dispatch(argv, io)
  } catch (error) {
    if (error instanceof CommandFailure) return fail(io, error.lines.map(formatMessage), error.exitCode)
    // Imported here, so that `--help` does not load the settings.
    const { SettingsError } = await import('../config/index.ts')
    if (error instanceof SettingsError) return fail(io, error.problems, 1)
    const stack = io.env.SMART_LOG_LEVEL === 'debug' && error instanceof Error ? [String(error.stack)] : []
    return fail(io, [formatMessage(describeError(error)), ...stack], 1)
  }
}

async function dispatch(argv: readonly string[], io: Io): Promise<ExitCode> {
  const [first, second] = argv
  if (first === 'help' && second !== undefined) return dispatch([...argv.slice(1), '--help'], io)
  if (first === '--version' || first === '-V')
    return print(io, `${(await import('../web/ui/index.ts')).version}\n`)
  if (first === undefined || first === '--help' || first === '-h' || first === 'help') {
    return print(io, formatOverview(), first === undefined ? 2 : 0)
  }
  const name =
    commandNames.find(known => known === `${first} ${second}`) ?? commandNames.find(known => known === first)
  if (name === undefined) return handleUnknownCommand(first, second, io)
  return runCommand(await loadCommand(name), argv.slice(name.split(' ').length), io)
}

async function runCommand(command: NamedCommand, args: readonly string[], io: Io): Promise<ExitCode> {
  const parsed = parseCommand(command, args)
  if (parsed.values.help === true) return print(io, formatCommandHelp(command))
  const { min, max } = command.positionals ?? { min: 0, max: 0 }
  const count = parsed.positionals.length
  if (count > max) throw failMisuse(`Unexpected argument ${parsed.positionals[max]}: see ${parsed.help}`)
  if (count < min) failMissing(parsed, 'argument')
  return withTicker(command.busy, io.stderr, () => command.run(parsed, io))
}

function parseCommand(command: NamedCommand, args: readonly string[]): Arguments {
  const help = `${HOW} ${command.name} --help`
  try {
    const parsed = parseArgs({
      args: [...args],
      options: { ...readOptions(command.usage), help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
      strict: true,
    })
    return { ...parsed, help }
  } catch (error) {
    // The first sentence names the option; the rest of Node's message explains `--`.
    const reason = describeError(error).split('. ')[0] ?? ''
    const unknown = /^Unknown option '--([^']+)'/.exec(reason)?.[1]
    const meant = unknown && findNearest(unknown, Object.keys(readOptions(command.usage)))
    throw failMisuse(`${reason}${meant ? `, did you mean --${meant}?` : `: see ${help}`}`)
  }
}

function handleUnknownCommand(first: string, second: string | undefined, io: Io): ExitCode {
  const group = commandNames.filter(name => name.startsWith(`${first} `))
  if (group.length > 0 && (second === undefined || second === '--help' || second === '-h')) {
    return print(io, formatGroupHelp(first, group), second === undefined ? 2 : 0)
  }
  const isPair = second !== undefined && !second.startsWith('-')
  const written = isPair ? `${first} ${second}` : first
  const meant = findNearest(written, commandNames)
  const help = group.length > 0 ? `${HOW} ${first} --help` : `${HOW} --help`
  throw failMisuse(`Unknown command ${written}${meant ? `, did you mean ${meant}?` : `: see ${help}`}`)
}

function print(io: Io, text: string, exitCode: ExitCode = 0): ExitCode {
  io.stdout.write(text)
  return exitCode
}

/** A name in a list must not move the cursor, colour the line or turn it around. */
function escapeOutput(output: Output): Output {
  const { isTTY = false, columns = 0 } = output
  return {
    isTTY,
    columns,
    write: text => output.write(escapeLines(text)),
    draw: text => output.write(text),
  }
}

function fail(io: Io, lines: readonly string[], exitCode: ExitCode): ExitCode {
  for (const line of lines) io.stderr.write(`${line}\n`)
  return exitCode
}

/** One line without a stack trace (START-7). */
function formatMessage(message: string): string {
  return (message.split('\n')[0] ?? '').trim() || 'Failed for an unknown reason'
}

function formatOverview(): string {
  return `Sallyport: a SMART-on-FHIR launch and authorization layer for any FHIR R4 server

Usage: ${HOW} <command> [options]

${commandGroups.map(({ title, names }) => `${title}:\n${formatCommandList(names)}`).join('\n\n')}

Each command has --help. --version prints the version.
`
}

function formatGroupHelp(group: string, names: readonly CommandName[]): string {
  return `Usage: ${HOW} ${group} <command> [options]

${formatCommandList(names)}

Each command has --help.
`
}

export function formatCommandHelp(command: NamedCommand): string {
  return wrapHelp(`${command.summary}\n\n${command.usage.trim()}\n`)
}

function formatCommandList(names: readonly CommandName[]): string {
  return wrapHelp(formatColumns(names.map(name => [`  ${name}`, getSummary(name)])))
}
