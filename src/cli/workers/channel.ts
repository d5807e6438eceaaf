import type { Controls } from '../../auth/index.ts'
import { describeError } from '../../core/index.ts'
import type { CheckResult, Metrics, ReportSubject } from '../../web/http/index.ts'
import { CommandFailure } from '../command.ts'
import type { LiveSettings } from '../start/live.ts'
import type { Parts, ServerName } from '../start/parts.ts'

/** Plain data, so that it can be sent to another process. */
export interface WorkerInput extends Pick<Parts, 'names' | 'settings' | 'trustedIssuers'> {
  readonly live: LiveSettings
  /** Names the worker in log lines. A worker that replaces another has its number. */
  readonly number: number
}

export interface ReportRequest {
  readonly server: ServerName
  readonly subject: ReportSubject
}

export type Report = Metrics | readonly CheckResult[]

/** The methods of a worker that the supervisor calls. */
export interface WorkerMethods {
  /** Resolves when the servers listen. */
  start(input: WorkerInput): Promise<void>
  /** Shows that the process responds. */
  ping(): Promise<void>
  drain(): Promise<void>
  /** Resolves when running requests are finished and everything is closed. */
  stop(): Promise<void>
  report(request: ReportRequest): Promise<Report>
  /** Replaces the live settings. */
  apply(live: LiveSettings): Promise<void>
}

/** The methods of the supervisor that a worker calls. */
export interface SupervisorMethods extends Pick<Controls, 'setLogLevel' | 'reload'> {
  /** The reports of all workers. */
  gather(request: ReportRequest): Promise<readonly Report[]>
  /** Resolves when all earlier holders of these keys have released them. Returns the number of the hold. */
  take(keys: readonly string[]): Promise<number>
  release(hold: number): Promise<void>
}

/** One end of the connection between the supervisor and a worker. */
export interface Port {
  send(message: Message): unknown
  on(event: 'message', listener: (message: Message) => void): unknown
}

type Message =
  | { readonly call: number; readonly name: string; readonly input: unknown }
  | { readonly response: number; readonly result?: unknown; readonly failure?: string }

type Input<Method> = Method extends () => unknown
  ? []
  : Method extends (input: infer T) => unknown
    ? [T]
    : never
type Output<Method> = Method extends (input: never) => infer Result ? Result : never

export interface Channel<Remote> {
  /** Calls a method of the other process. Rejects if the method fails or the process ends. */
  call<Name extends keyof Remote & string>(name: Name, ...input: Input<Remote[Name]>): Output<Remote[Name]>
  end(reason: string): void
}

interface Waiting {
  resolve(result: unknown): void
  reject(error: Error): void
}

/** Offers methods to another process, and calls the methods that it offers. */
export function openChannel<Own, Remote>(port: Port, own: Own): Channel<Remote> {
  const methods = own as Readonly<Record<string, (input: unknown) => Promise<unknown>>>
  const waiting = new Map<number, Waiting>()
  let calls = 0

  async function respond(call: number, name: string, input: unknown): Promise<void> {
    try {
      port.send({ response: call, result: await methods[name]?.(input) })
    } catch (error) {
      port.send({ response: call, failure: describeError(error) })
    }
  }

  port.on('message', message => {
    if ('call' in message) return void respond(message.call, message.name, message.input)
    const call = waiting.get(message.response)
    waiting.delete(message.response)
    if (message.failure === undefined) call?.resolve(message.result)
    else call?.reject(new CommandFailure(message.failure))
  })

  return {
    call(name, ...[input]) {
      const call = calls++
      const response = new Promise<unknown>((resolve, reject) => waiting.set(call, { resolve, reject }))
      port.send({ call, name, input })
      return response as never
    },
    end(reason) {
      for (const { reject } of waiting.values()) reject(new CommandFailure(reason))
      waiting.clear()
    },
  }
}
