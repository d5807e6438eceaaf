import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Io } from '../command.ts'

/** Runs a command line in a shell, with our standard streams, until it ends or we are stopped. Its exit code. */
export async function runProgram(line: string, env: Io['env'], stopped: Promise<void>): Promise<number> {
  const child = spawn(line, { shell: true, stdio: 'inherit', env: { ...env } })
  void stopped.then(() => child.kill())
  const [code] = await once(child, 'close')
  // A command that was ended by a signal has no code.
  return code ?? 1
}
