import { spawn } from 'node:child_process'
import { Socket } from 'node:net'
import { createInterface, type Interface } from 'node:readline'
import { findOwnProgram } from '../core/index.ts'
import type { Env } from './environment.ts'

const MAX_LINES = 100

/** A process of `sallyport` that ends with its standard input, which ends with this process, however that ends. */
export interface Process {
  /** What it prints. */
  readonly lines: Interface
  /** What it prints on its standard error. */
  readonly errors: Interface
  /** The last lines of its standard error. */
  readonly log: readonly string[]
  readonly closed: Promise<void>
  write(line: string): void
  /** This process may end before it does, until `ref` is called. */
  unref(): void
  ref(): void
  stop(): Promise<void>
}

export function startProcess(args: readonly string[], env: Env): Process {
  const child = spawn(process.execPath, [findOwnProgram('src/launcher/main'), ...args], {
    env: { ...env },
    windowsHide: true,
  })
  const { stdin, stdout, stderr } = child
  const log: string[] = []
  const errors = createInterface(stderr).on('line', line => {
    log.push(line)
    if (log.length > MAX_LINES) log.shift()
  })
  child.on('error', error => log.push(error.message))
  // It has ended, which `closed` tells.
  stdin.on('error', () => {})
  const handles = [child, ...[stdin, stdout, stderr].filter(stream => stream instanceof Socket)]
  const ref = () => handles.forEach(handle => void handle.ref())
  const closed = new Promise<void>(resolve => child.on('close', () => resolve()))
  return {
    lines: createInterface(stdout),
    errors,
    log,
    closed,
    write: line => stdin.write(`${line}\n`),
    unref: () => handles.forEach(handle => void handle.unref()),
    ref,
    stop() {
      ref()
      stdin.end()
      return closed
    },
  }
}

export interface Servers {
  /** What the command of `start --run` got. */
  readonly env: Readonly<Record<string, string>>
  stop(): Promise<void>
}

export async function startServers(names: readonly string[], env: Env): Promise<Servers> {
  const hold = `"${process.execPath}" "${findOwnProgram('src/testing-api/hold')}"`
  const { lines, errors, closed, log, unref, stop } = startProcess(
    ['start', ...names, '--ephemeral', '--run', hold],
    env,
  )
  const first = new Promise<string>(resolve => lines.once('line', resolve))
  // The environment has the settings of the test and no others: the command only warns, because others share its environment.
  const unknown = new Promise<never>((_resolve, reject) => {
    errors.on('line', text => {
      const [, setting, meant = ''] =
        /^Unknown variable (\S+) is ignored(: did you mean .*)?$/.exec(text) ?? []
      if (setting !== undefined) reject(new TypeError(`startSallyport: unknown setting ${setting}${meant}`))
    })
  })
  const line = await Promise.race([first, closed, unknown]).catch(error => {
    void stop()
    throw error
  })
  if (line === undefined) throw new Error(`Sallyport did not start:\n${log.join('\n')}`)
  // A test run that forgets to stop them can end.
  unref()
  return { env: JSON.parse(line), stop }
}
