import type { ParseArgsOptionsConfig } from 'node:util'

/** What a command may touch of the world, so that it is tested in the process of the test. */
export interface Io {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean }
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
}

/** A stream that text is printed to; a terminal tells how wide it is. */
export interface Output {
  write(text: string): unknown
  readonly isTTY?: boolean
  readonly columns?: number
}

/** 0: done; 1: it failed, and a line on stderr says why; 2: it was called wrongly; 3: `explain` says refused. */
export type ExitCode = 0 | 1 | 2 | 3

/** What was written after the command's name, parsed by `node:util` as its options say. */
export interface Arguments {
  readonly values: Readonly<Record<string, string | boolean | (string | boolean)[] | undefined>>
  readonly positionals: readonly string[]
}

/** One command of the command line. The dispatcher parses, answers `--help`, and prints what a command throws. */
export interface Command {
  /** As it is typed, for example `clinician add`. */
  readonly name: string
  /** One line in the list of commands. */
  readonly summary: string
  /** The text of `--help`, without the name line and summary: usage, options, examples. */
  readonly usage: string
  readonly options: ParseArgsOptionsConfig
  /** How many arguments without a dash it takes. */
  readonly positionals: { readonly min: number; readonly max: number }
  run(args: Arguments, io: Io): Promise<ExitCode>
}

/** A failure with one line for the user and no stack trace. */
export class CommandFailure extends Error {
  readonly exitCode: 1 | 2
  constructor(message: string, exitCode: 1 | 2 = 1) {
    super(message)
    this.exitCode = exitCode
  }
}

/** The command was called wrongly; the line says how, and points to `--help`. */
export function failMisuse(message: string): CommandFailure {
  return new CommandFailure(message, 2)
}
