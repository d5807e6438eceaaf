import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import type { ExitCode, Io } from './command.ts'
import { runCommandLine } from './command-line.ts'

/** A line of the input. The result has the same id. */
interface Request {
  readonly id: number
  readonly args: readonly string[]
  readonly cwd: string
}

/**
 * Runs the commands that `sallyport/testing` writes to standard input, as lines of JSON, and writes a line with each result. Loading the
 * program takes much longer than a command, and happens once.
 */
export async function runBatch(io: Io): Promise<ExitCode> {
  for await (const line of createInterface({ input: io.stdin })) void runRequest(io, JSON.parse(line))
  return 0
}

async function runRequest(io: Io, { id, args, cwd }: Request): Promise<void> {
  const printed = { stdout: '', stderr: '' }
  const capture = (name: keyof typeof printed) => ({
    write(text: string) {
      printed[name] += text
    },
  })
  const exitCode = await runCommandLine(args, {
    ...io,
    stdin: Readable.from([]),
    stdout: capture('stdout'),
    stderr: capture('stderr'),
    cwd,
  })
  io.stdout.write(`${JSON.stringify({ id, exitCode, ...printed })}\n`)
}
