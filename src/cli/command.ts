import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { describeError, escapeLine } from '../core/index.ts'

/** Everything that a command uses outside its process state, so that tests can run it in process. */
export interface Io {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean }
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
}

export interface Output {
  /** A command line's own output escapes the controls of a terminal, which a name may contain. */
  write(text: string): unknown
  /** Writes with controls, for a line that is drawn again. */
  draw?(text: string): unknown
  readonly isTTY?: boolean
  readonly columns?: number
}

/**
 * 0: success; 1: failure, with a line on stderr; 2: wrong usage; 3 and 4: an answer that scripts must not overlook. A command that
 * runs a program exits with the code of the program.
 */
export type ExitCode = number

export interface Arguments {
  /** By option. Of an option that is repeated, the last value counts, unless a command reads several. */
  readonly values: Readonly<Record<string, boolean | readonly string[] | undefined>>
  readonly positionals: readonly string[]
  /** The command that prints the help text. */
  readonly help: string
}

export interface Command {
  /** The text of `--help` below the name and summary. It also defines the options. */
  readonly usage: string
  /** What it does, for commands that may take seconds without a word: `Verifying the trail`. */
  readonly busy?: string
  /** The values of options that a shell completes. */
  listValues?(): Promise<Readonly<Record<string, readonly string[]>>>
  /** By default none. */
  readonly positionals?: { readonly min: number; readonly max: number }
  run(args: Arguments, io: Io): Promise<ExitCode>
}

export interface NamedCommand extends Command {
  readonly name: string
  readonly summary: string
}

/** A failure with one line for the user, or one for each cause, and no stack trace. */
export class CommandFailure extends Error {
  readonly lines: readonly string[]
  readonly exitCode: 1 | 2
  constructor(lines: string | readonly string[], exitCode: 1 | 2 = 1) {
    const all = [lines].flat()
    super(all.join('\n'))
    this.lines = all
    this.exitCode = exitCode
  }
}

export function failMisuse(lines: string | readonly string[]): CommandFailure {
  return new CommandFailure(lines, 2)
}

/** Notes about a change that is complete: if they fail, the command has not failed, which a person would repeat. */
export async function addNotes(io: Io, write: () => Promise<void>): Promise<void> {
  try {
    await write()
  } catch (error) {
    io.stderr.write(
      `Note: the change is complete, but its consequences were not checked: ${describeError(error)}\n`,
    )
  }
}

export function getRequired(args: Arguments, option: string): string {
  return getOptional(args, option) ?? failMissing(args, `--${option}`)
}

export function failMissing({ help }: Arguments, missing: string): never {
  throw failMisuse(`Missing ${missing}: see ${help}`)
}

/** A value that may be empty. */
export function getText(args: Arguments, option: string): string | undefined {
  return getSeveral(args, option).at(-1)
}

export function getOptional(args: Arguments, option: string): string | undefined {
  const value = getText(args, option)
  if (value === '') throw failMisuse(`Empty --${option}`)
  return value
}

export function getSeveral(args: Arguments, option: string): readonly string[] {
  const values = args.values[option]
  return typeof values === 'object' ? values : []
}

export function isSet(args: Arguments, option: string): boolean {
  return args.values[option] === true
}

/** The subject of a command may be an option or a plain argument: `--username ada`, or `ada`. */
export function getSubject(args: Arguments, option: string): string {
  const [positional] = args.positionals
  if (positional === undefined) return getRequired(args, option)
  if (getOptional(args, option) !== undefined)
    throw failMisuse(`Unexpected argument ${positional}: --${option} is already set`)
  return positional
}

/** Reads the JSON file that an option names. An error does not quote the file, which may contain secrets. */
export function readJsonFile(args: Arguments, option: string, { cwd }: Io): unknown {
  const path = resolve(cwd, getRequired(args, option))
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    const unreadable = existsSync(path) ? 'cannot be read' : 'does not exist'
    const reason = error instanceof SyntaxError ? 'is not JSON' : unreadable
    throw new CommandFailure(`Cannot use --${option}: ${path} ${reason}`)
  }
}

/** The result of a command with `--json`, for scripts. */
export function printJson({ stdout }: Io, value: unknown): void {
  stdout.write(`${JSON.stringify(value, undefined, 2)}\n`)
}

export function formatColumns(texts: readonly (readonly string[])[]): string {
  const rows = texts.map(row => row.map(escapeLine))
  const widths: number[] = []
  for (const row of rows)
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, cell.length)
    })
  return rows
    .map(row =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
