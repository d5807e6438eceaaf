import type { Controls } from '../../auth/index.ts'
import type { Serialize } from '../../cache/index.ts'
import {
  createChildLogger,
  createLogger,
  type Gatherer,
  getReporter,
  joinWorkers,
} from '../../web/http/index.ts'
import { followLogLevel, LiveState } from '../start/live.ts'
import { Closing, endAtUnexpected, openStorage, type Parts, type ServerName } from '../start/parts.ts'
import { type Serving, serve } from '../start/start-servers.ts'
import {
  type Channel,
  openChannel,
  type Port,
  type SupervisorMethods,
  type WorkerInput,
  type WorkerMethods,
} from './channel.ts'

/** Runs the servers in this process as the supervisor requests. */
export function runWorker(port: Port): void {
  // A terminal and a service manager send their signals to all processes; the supervisor decides when this one stops.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
  const { promise: serving, resolve } = Promise.withResolvers<Serving & Pick<Parts, 'live'>>()
  const channel: Channel<SupervisorMethods> = openChannel<WorkerMethods, SupervisorMethods>(port, {
    start: async input => resolve(await startServing(input, channel)),
    ping: async () => {},
    drain: async () => (await serving).drain(),
    stop: async () => (await serving).close(),
    apply: async next => (await serving).live.change(next),
    async report({ server, subject }) {
      const app = (await serving).apps.get(server)
      if (!app) throw new Error(`Cannot report: ${server} does not run in this process`)
      return getReporter(app)[subject]()
    },
  })
}

async function startServing(
  { number, live: initial, ...input }: WorkerInput,
  channel: Channel<SupervisorMethods>,
): Promise<Serving & Pick<Parts, 'live'>> {
  const live = new LiveState(initial)
  const logger = createChildLogger(createLogger({ level: initial.logLevel }), { worker: number })
  followLogLevel(live, logger)
  endAtUnexpected(logger)
  const parts: Parts = {
    ...input,
    live,
    logger,
    serialize: createSharedSerialize(channel),
    controls: relayControls(live, channel),
    worker: number,
  }
  const closing = new Closing()
  const storage = openStorage(parts, closing)
  const serving = await serve(parts, { storage, auth: undefined, fhir: undefined }, closing)
  for (const [name, app] of serving.apps) joinWorkers(app, createGatherer(channel, name))
  return { ...serving, live }
}

function relayControls(live: LiveState, { call }: Channel<SupervisorMethods>): Controls {
  return {
    getPolicy: () => live.current.policy,
    getLogLevel: () => live.current.logLevel,
    setLogLevel: level => call('setLogLevel', level),
    reload: () => call('reload'),
  }
}

/** Conditional writes with equal conditions must not run at the same time in two workers. */
function createSharedSerialize({ call }: Channel<SupervisorMethods>): Serialize {
  return async (keys, work) => {
    const hold = await call('take', keys)
    try {
      return await work()
    } finally {
      void call('release', hold)
    }
  }
}

function createGatherer({ call }: Channel<SupervisorMethods>, server: ServerName): Gatherer {
  // The supervisor returns reports of the requested subject.
  const gather = (subject: keyof Gatherer) => call('gather', { server, subject }) as Promise<never>
  return { metrics: () => gather('metrics'), readiness: () => gather('readiness') }
}
