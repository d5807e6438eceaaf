import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Socket } from 'node:net'
import { extname } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Env } from './environment.ts'

const MAX_LINES = 100

/** Runs a command of `sallyport`. A failure has what it printed, in the words of the function that ran it, if one is named. */
export type Run = (args: readonly string[], method?: string) => Promise<{ stdout: string; stderr: string }>

export interface Servers {
  /** What the command of `start --run` got. */
  readonly env: Readonly<Record<string, string>>
  stop(): Promise<void>
}

/** Starts the servers. They stop when their standard input ends, which it does with this process at the latest. */
export async function startServers(names: readonly string[], env: Env): Promise<Servers> {
  const hold = `"${process.execPath}" "${findFile('./hold')}"`
  const args = [findFile('../launcher/main'), 'start', ...names, '--ephemeral', '--run', hold]
  const child = spawn(process.execPath, args, { env: { ...env }, windowsHide: true })
  const log: string[] = []
  createInterface(child.stderr).on('line', line => {
    log.push(line)
    if (log.length > MAX_LINES) log.shift()
  })
  const closed = once(child, 'close')
  const first = once(createInterface(child.stdout), 'line')
  const line = await Promise.race([first.then(([text]) => String(text)), closed.then(() => undefined)])
  if (line === undefined) throw new Error(`Sallyport did not start:\n${log.join('\n')}`)
  // A test run that forgets to stop them can end.
  for (const handle of listHandles(child)) handle.unref()
  return {
    env: JSON.parse(line),
    async stop() {
      for (const handle of listHandles(child)) handle.ref()
      child.stdin.end()
      await closed
    },
  }
}

function listHandles(child: ChildProcessWithoutNullStreams) {
  const sockets = [child.stdin, child.stdout, child.stderr].filter(stream => stream instanceof Socket)
  return [child, ...sockets]
}

export function createRun(env: Env): Run {
  return (args, method) =>
    new Promise((resolve, reject) => {
      const options = { env: { ...env }, windowsHide: true, maxBuffer: 100_000_000 }
      execFile(
        process.execPath,
        [findFile('../launcher/main'), ...args],
        options,
        (error, stdout, stderr) => {
          const output = `${stdout}${stderr}`.trim() || error?.message
          if (!error) resolve({ stdout, stderr })
          else if (method === undefined) reject(new Error(`sallyport ${args.join(' ')}: ${output}`))
          else reject(new Error(`${method}: ${useOwnNames(String(output))}`))
        },
      )
    })
}

/** Options of commands that have another name here. */
const OWN_NAMES: Readonly<Record<string, string>> = {
  client: 'app',
  'redirect-uri': 'redirectUris',
  'launch-url': 'launchUrl',
  'jwks-file': 'jwks',
  'jwks-url': 'jwksUrl',
}

/** For a caller who does not see the command: `Set --patient` becomes `Set patient`. */
function useOwnNames(text: string): string {
  return text.replace(/(?<= )--([a-z-]+)/g, (_, option) => OWN_NAMES[option] ?? option)
}

/** A file of ours: JavaScript in the package, TypeScript in a clone. */
function findFile(path: string): string {
  return fileURLToPath(new URL(`${path}${extname(import.meta.url)}`, import.meta.url))
}
