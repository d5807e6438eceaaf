import { PassThrough, Readable } from 'node:stream'
import type { Io } from '../../src/cli/command.ts'
import { runCommandLine } from '../../src/cli/command-line.ts'

/** What a command did. */
export interface Done {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

export interface Given {
  readonly env?: Io['env']
  readonly cwd?: string
  /** What standard input holds; or a stream, for a terminal. */
  readonly stdin?: string | Io['stdin']
}

/** Runs a command of the command line in this process. */
export async function sallyport(
  args: readonly string[],
  { env = {}, cwd = '/nowhere', stdin = '' }: Given = {},
): Promise<Done> {
  const written = { stdout: '', stderr: '' }
  const exitCode = await runCommandLine(args, {
    env,
    cwd,
    stdin: typeof stdin === 'string' ? Readable.from([Buffer.from(stdin)]) : stdin,
    stdout: {
      write: text => {
        written.stdout += text
      },
    },
    stderr: {
      write: text => {
        written.stderr += text
      },
    },
  })
  return { exitCode, ...written }
}

/** A test double of a terminal, on which these lines are typed. */
export function terminal(...lines: readonly string[]): Io['stdin'] {
  const typed = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => typed })
  for (const line of lines) typed.write(line)
  return typed
}
