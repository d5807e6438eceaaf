import type { Env } from './environment.ts'
import { startProcess } from './processes.ts'

/** Runs a command of `sallyport`. A failure has what it printed, in the words of the function that ran it, if one is named. */
export type Run = (args: readonly string[], method?: string) => Promise<{ stdout: string; stderr: string }>

export interface Commands {
  readonly run: Run
  stop(): Promise<void>
}

/** Runs commands in one process, which the first of them starts: a start takes much longer than a command. */
export function createCommands(env: Env): Commands {
  let batch: Batch | undefined
  return {
    async run(args, method) {
      batch ??= startBatch(env, () => {
        batch = undefined
      })
      const { exitCode, stdout, stderr } = await batch.run(args)
      if (exitCode === 0) return { stdout, stderr }
      const output = `${stdout}${stderr}`.trim()
      throw new Error(
        method === undefined ? `sallyport ${args.join(' ')}: ${output}` : `${method}: ${useOwnNames(output)}`,
      )
    },
    async stop() {
      await batch?.stop()
    },
  }
}

/** A line that the process prints (src/cli/batch.ts). */
interface Result {
  readonly id: number
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

interface Batch {
  run(args: readonly string[]): Promise<Omit<Result, 'id'>>
  stop(): Promise<void>
}

function startBatch(env: Env, atEnd: () => void): Batch {
  const { lines, closed, log, write, ref, unref, stop } = startProcess(['--batch'], env)
  const waiting = new Map<number, (result: Omit<Result, 'id'>) => void>()
  let last = 0
  lines.on('line', line => {
    const result: Result = JSON.parse(line)
    waiting.get(result.id)?.(result)
    waiting.delete(result.id)
    if (waiting.size === 0) unref()
  })
  void closed.then(() => {
    atEnd()
    for (const settle of waiting.values()) settle({ exitCode: 1, stdout: '', stderr: log.join('\n') })
  })
  return {
    run(args) {
      const id = ++last
      ref()
      write(JSON.stringify({ id, args, cwd: process.cwd() }))
      return new Promise(resolve => waiting.set(id, resolve))
    },
    stop,
  }
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
