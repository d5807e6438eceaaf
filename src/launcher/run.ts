import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { pathToFileURL } from 'node:url'
import { findOwnProgram } from '../core/index.ts'
import { endWithNpx } from './end-with-npx.ts'

export async function runHere(): Promise<void> {
  endWithNpx(() => process.kill(process.pid, 'SIGTERM'))
  // A name that the compiler does not follow: the rest of the program needs a newer Node than this file.
  await import(pathToFileURL(findOwnProgram('src/cli/main')).href)
}

/** Runs the same command with another Node, which gets our signals, and ends as it ends. */
export function runWith(node: string): void {
  const started = findOwnProgram('src/launcher/started')
  const child = spawn(node, ['--max-semi-space-size=8', started, ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    // Less memory for the same work.
    env: { MALLOC_ARENA_MAX: '2', ...process.env },
    windowsHide: true,
  })
  // A terminal sends SIGINT to both processes: the child decides when to end.
  process.on('SIGINT', () => {})
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))
  endWithNpx(() => child.kill('SIGTERM'))
  child.on('error', error => {
    process.stderr.write(`Cannot start ${node}: ${error.message}\n`)
    process.exitCode = 1
  })
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 128 + (signal === null ? 0 : constants.signals[signal])
  })
}
