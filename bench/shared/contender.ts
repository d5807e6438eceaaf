/** A server that is measured: a process of its own, or a tree of processes. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Contender {
  readonly name: string
  readonly port: number
  /** Makes texts of HTTP requests, each for one use. */
  makeRequests(kind: string, count: number): Promise<readonly string[]>
  readUsage(): Usage | Promise<Usage>
  stop(): void | Promise<void>
}

/** Microseconds of CPU time so far. */
export interface Usage {
  /** Of all threads of all processes. */
  readonly cpu: number
  /** Of the thread that runs JavaScript, in a server that is a Node process. */
  readonly main: number
}

export type Served = Pick<Contender, 'port' | 'makeRequests'>
type Message = 'usage' | { readonly kind: string; readonly count: number }

/** Starts a file that calls `serveContender`. */
export async function startContender(
  name: string,
  file: string,
  args: readonly string[],
): Promise<Contender> {
  const child = fork(file, args, { stdio: ['ignore', 'inherit', 'pipe', 'ipc'] })
  let errors = ''
  child.stderr?.on('data', chunk => (errors += chunk))
  const ended = once(child, 'exit').then(() => {
    throw new Error(`Cannot bench: ${name} has ended\n${errors}`)
  })
  const ask = async (message?: Message) => {
    if (message !== undefined) child.send(message)
    const [reply] = await Promise.race([once(child, 'message'), ended])
    return reply
  }
  const { port } = await ask()
  return {
    name,
    port,
    makeRequests: (kind, count) => ask({ kind, count }),
    readUsage: () => ask('usage'),
    async stop() {
      child.disconnect()
      await ended.catch(() => {})
    },
  }
}

export function serveContender({ port, makeRequests }: Served): void {
  process.on('message', async (message: Message) => {
    process.send?.(message === 'usage' ? readOwnUsage() : await makeRequests(message.kind, message.count))
  })
  process.on('disconnect', () => process.exit(0))
  process.send?.({ port })
}

function readOwnUsage(): Usage {
  const all = process.cpuUsage()
  const main = process.threadCpuUsage()
  return { cpu: all.user + all.system, main: main.user + main.system }
}

/** The usage of any process and of those that it has started. Linux only. */
export function readTreeUsage(pid: number): Usage {
  const times = listTree(pid).flatMap(listThreads)
  return { cpu: times.reduce((sum, [run]) => sum + run, 0) / 1000, main: 0 }
}

export function listTree(pid: number): readonly number[] {
  const children = listTasks(pid).flatMap(task => readFileSync(`${task}/children`, 'utf8').split(' '))
  return [pid, ...children.filter(Boolean).map(Number).flatMap(listTree)]
}

function listThreads(pid: number) {
  return listTasks(pid).map(readSchedule)
}

function listTasks(pid: number): readonly string[] {
  return readdirSync(`/proc/${pid}/task`).map(id => `/proc/${pid}/task/${id}`)
}

/** Nanoseconds in which a thread ran, and in which it was ready to run and had no core. */
export function readSchedule(task: string): readonly [run: number, waited: number] {
  const [run = 0, waited = 0] = readFileSync(`${task}/schedstat`, 'utf8').split(' ').map(Number)
  return [run, waited]
}

/** The version of an installed package. */
export function getVersion(name: string): string {
  const file = join(import.meta.dirname, '../../node_modules', name, 'package.json')
  return JSON.parse(readFileSync(file, 'utf8')).version
}
