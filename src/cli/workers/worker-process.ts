import type { ChildProcess } from 'node:child_process'
import cluster from 'node:cluster'
import { setTimeout as pause } from 'node:timers/promises'
import type { Serialize } from '../../cache/index.ts'
import type { LiveSettings } from '../start/live.ts'
import {
  openChannel,
  type Report,
  type ReportRequest,
  type SupervisorMethods,
  type WorkerInput,
  type WorkerMethods,
} from './channel.ts'
import { watchSilence } from './watch-silence.ts'

/** A process of a worker, as its supervisor sees it. */
export interface WorkerProcess {
  readonly pid: number | undefined
  /** Resolves when the servers listen. */
  start(): Promise<void>
  isListening(): boolean
  /** Undefined if the process does not respond in time. */
  report(request: ReportRequest): Promise<Report | undefined>
  /** Resolves when the process has applied the live settings, or does not respond in time. */
  apply(live: LiveSettings): Promise<void>
  drain(): void
  stop(): Promise<void>
  kill(): void
  /** Resolves when the process has ended, with the reason. */
  readonly ended: Promise<string>
}

export interface WorkerOptions extends Pick<SupervisorMethods, 'gather' | 'setLogLevel' | 'reload'> {
  readonly input: WorkerInput
  /** Shared by all workers. */
  readonly serialize: Serialize
  /** Called before a process that does not respond is killed. */
  readonly onSilent: () => void
}

/** Longer than the checks of `/readyz` may take. */
export const REPORT_MS = 1_200
/** Longer than the servers let running requests finish. */
const STOP_MS = 9_000
const UNREF = { ref: false }
/** A process that listens is asked every second, and killed if it is silent for ten. */
const PING_MS = 1_000
const SILENT_PINGS = 10

export function forkWorker({ input, serialize, onSilent, ...methods }: WorkerOptions): WorkerProcess {
  const worker = cluster.fork()
  const closeAssigned = trackAssigned(worker.process)
  const { take, release, releaseAll } = createHolds(serialize)
  const { call, end } = openChannel<SupervisorMethods, WorkerMethods>(worker, {
    ...methods,
    take,
    release,
  })
  const { promise: ended, resolve } = Promise.withResolvers<string>()
  let isListening = false
  // A message to a process that has just ended fails. Its exit event follows.
  worker.on('error', () => {})
  worker.on('exit', (code, signal) => {
    isListening = false
    clearInterval(pinging)
    const reason = signal ?? `exit code ${code}`
    end(`Worker ${input.number} ended: ${reason}`)
    releaseAll()
    closeAssigned()
    resolve(reason)
  })
  const kill = () => worker.process.kill('SIGKILL')
  let pinging: NodeJS.Timeout | undefined
  const tick = watchSilence({
    ping: () => call('ping'),
    onSilent() {
      onSilent()
      kill()
    },
    ticks: SILENT_PINGS,
  })

  return {
    pid: worker.process.pid,
    ended,
    kill,
    isListening: () => isListening,
    async start() {
      await call('start', input)
      isListening = true
      pinging = setInterval(tick, PING_MS).unref()
    },
    report: request =>
      Promise.race([call('report', request), pause(REPORT_MS, undefined, UNREF)]).catch(() => undefined),
    apply: live =>
      Promise.race([call('apply', live), pause(REPORT_MS, undefined, UNREF)]).catch(() => undefined),
    drain() {
      if (isListening) void call('drain').catch(() => {})
    },
    async stop() {
      if (!isListening) return void kill()
      await Promise.race([call('stop'), pause(STOP_MS, undefined, UNREF)]).catch(() => {})
      kill()
      await ended
    },
  }
}

/**
 * `node:cluster` waits for ever for a worker that ends before it has accepted a connection, and so would the client. The
 * returned function closes such connections: at most one of each socket, the last that was sent.
 */
function trackAssigned(process: ChildProcess): () => void {
  const assigned = new Map<unknown, { close(): void }>()
  const send = process.send.bind(process) as (...message: readonly unknown[]) => boolean
  process.send = (message: { readonly key?: string }, handle?: unknown, ...rest: readonly unknown[]) => {
    if (isClosable(handle)) assigned.set(message.key, handle)
    return send(message, handle, ...rest)
  }
  return () => {
    for (const handle of assigned.values()) handle.close()
  }
}

function isClosable(handle: unknown): handle is { close(): void } {
  return typeof handle === 'object' && handle !== null && 'close' in handle
}

/** A worker that ends releases its keys. */
function createHolds(serialize: Serialize) {
  const held = new Map<number, () => void>()
  let holds = 0
  let isEnded = false
  return {
    take: (keys: readonly string[]) =>
      new Promise<number>(resolve => {
        const hold = () =>
          new Promise<void>(release => {
            if (isEnded) return release()
            held.set(++holds, release)
            resolve(holds)
          })
        void serialize(keys, hold)
      }),
    async release(hold: number) {
      held.get(hold)?.()
      held.delete(hold)
    },
    releaseAll() {
      isEnded = true
      for (const release of held.values()) release()
    },
  }
}
