import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from './free-ports.ts'
import { PROGRAM } from './program.ts'

/** The variables of this process that a started one needs; compiled modules are shared. */
export const PROCESS_ENV = {
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
}

/** A setup for a start: a new folder and unused ports. */
export interface Place {
  readonly env: Readonly<Record<string, string>>
  readonly authUrl: string
  readonly fhirUrl: string
  readonly appUrl: string
  readonly folder: string
  remove(): void
}

export async function newPlace(env: Readonly<Record<string, string>> = {}): Promise<Place> {
  const [auth, fhir, app] = await freePorts(3)
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-started-'))
  const [authUrl, fhirUrl, appUrl] = [
    `http://localhost:${auth}`,
    `http://localhost:${fhir}/fhir`,
    `http://localhost:${app}`,
  ]
  return {
    authUrl,
    fhirUrl,
    appUrl,
    folder,
    env: {
      SMART_ISSUER_URL: authUrl,
      SMART_FHIR_BASE_URL: fhirUrl,
      SMART_APP_URL: appUrl,
      SMART_DATA_DIR: join(folder, 'data'),
      SMART_SAMPLE_PATIENTS: '2',
      ...env,
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** A command that has ended. */
interface Ran {
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs `sallyport <args>` to its end. */
export async function runProgram(
  args: readonly string[],
  place: Pick<Place, 'env' | 'folder'>,
  stdin = '',
): Promise<Ran> {
  const started = startProcess(args, place)
  started.child.stdin?.end(stdin)
  const { exitCode } = await started.ended()
  return { exitCode, stdout: started.stdout(), stderr: started.stderr() }
}

/** A process of the command line. */
export interface Started {
  readonly child: ChildProcess
  stdout(): string
  stderr(): string
  /** Waits until a text was printed; rejects when the process ends before. */
  printed(text: RegExp): Promise<void>
  /** Waits for the end. A process that was ended by a signal has no exit code. */
  ended(): Promise<{ readonly exitCode: number | null; readonly signal: NodeJS.Signals | null }>
}

/** A test that ends early, such as one that takes too long, leaves no process. */
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Runs `sallyport <args>` in a separate process, by another program if it is given. */
export function startProcess(
  args: readonly string[],
  { env, folder }: Pick<Place, 'env' | 'folder'>,
  [file = '', ...before]: readonly string[] = PROGRAM,
): Started {
  const child = spawn(file, [...before, ...args], {
    cwd: folder,
    env: { ...PROCESS_ENV, HOME: folder, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  running.add(child)
  child.once('close', () => running.delete(child))
  const text = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', chunk => {
    text.stdout += chunk
  })
  child.stderr.setEncoding('utf8').on('data', chunk => {
    text.stderr += chunk
  })
  const closed = once(child, 'close')
  return {
    child,
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    printed: pattern => printed(child, text, pattern),
    ended: async () => {
      const [exitCode, signal] = await closed
      return { exitCode, signal }
    },
  }
}

async function printed(
  child: ChildProcess,
  text: Readonly<Record<'stdout' | 'stderr', string>>,
  pattern: RegExp,
): Promise<void> {
  while (!pattern.test(text.stdout)) {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`Cannot see ${pattern}: the process has ended. ${text.stderr}`)
    const waiting = new AbortController()
    const { signal } = waiting
    await Promise.race([once(child.stdout ?? child, 'data', { signal }), once(child, 'close', { signal })])
    waiting.abort()
  }
}
