import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Io } from '../command.ts'

/** Runs a command line in a shell, with our standard streams, until it ends or we are stopped. Whether it succeeded. */
export async function runProgram(line: string, env: Io['env'], stopped: Promise<void>): Promise<boolean> {
  const child = spawn(line, { shell: true, stdio: 'inherit', env: { ...env } })
  void stopped.then(() => child.kill())
  const [code] = await once(child, 'close')
  return code === 0
}
