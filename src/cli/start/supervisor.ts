import cluster from 'node:cluster'
import { join } from 'node:path'
import { createSerialise } from '../../cache/index.ts'
import type { Settings } from '../../config/index.ts'
import type { Store } from '../../store/index.ts'
import { type CheckResult, type Metrics, readProcessMetrics, type ServerReports } from '../../web/index.ts'
import type { Report, ReportRequest } from './channel.ts'
import { Closing, type Parts, type ServerName, type Tell } from './parts.ts'
import { prepare } from './prepare.ts'
import { createSharedAppend } from './shared-append.ts'
import type { Running } from './start-servers.ts'
import { forkWorker } from './worker-process.ts'
import { openSlot, type WorkerSlot } from './worker-slot.ts'

/** Does the work of a start in this process, and runs the servers in several others, behind the same ports (START-8). */
export async function startWorkers(parts: Parts, tell: Tell): Promise<Running> {
  const closing = new Closing()
  try {
    const { keeping, auth, fhir } = prepare(parts, tell, closing)
    const [{ store }, prepared] = await Promise.all([keeping, auth, fhir])
    const slots = openSlots(parts, store)
    closing.add(() => Promise.all(slots.map(slot => slot.stop())))
    const [testLogin] = await Promise.all([prepared?.testLogin, ...slots.map(slot => slot.start())])
    const drain = () => {
      for (const slot of slots) slot.drain()
    }
    const checkReadiness = async () =>
      (await Promise.all(parts.names.map(server => gatherReadiness(slots, server)))).flat(2)
    const report = () => Promise.all(parts.names.map(server => reportServer(slots, server)))
    return { testLogin, drain, checkReadiness, report, close: () => closing.close() }
  } catch (error) {
    await closing.close().catch(() => {})
    throw error
  }
}

function openSlots(
  { names, settings, trustedIssuers, live, controls, logger, logsToStderr }: Parts,
  store: Store,
): readonly WorkerSlot[] {
  // Round robin is the default: a shared socket gives most connections to the busiest process.
  cluster.schedulingPolicy = cluster.SCHED_RR
  cluster.setupPrimary({
    ...{ exec: join(import.meta.dirname, '../main.ts'), args: [], serialization: 'advanced' },
    ...(logsToStderr && { stdio: ['inherit', 2, 2, 'ipc'] }),
  })
  const { setLogLevel, reload } = controls
  const shared = { serialise: createSerialise(), append: createSharedAppend(store), setLogLevel, reload }
  const gather = (request: ReportRequest) => gatherReports(slots, request)
  const input = { names, settings: shareLimits(settings), trustedIssuers }
  const slots: readonly WorkerSlot[] = Array.from({ length: settings.workers }, (_, at) => {
    const number = at + 1
    return openSlot(
      number,
      () => forkWorker({ input: { ...input, live: live.current, number }, gather, ...shared }),
      logger,
    )
  })
  live.onChange(current => Promise.all(slots.map(slot => slot.apply(current))))
  return slots
}

/** A limit that protects another server holds for all workers together. */
function shareLimits(settings: Settings): Settings {
  const { upstream } = settings.fhir
  const connections = Math.ceil(upstream.connections / settings.workers)
  return { ...settings, fhir: { ...settings.fhir, upstream: { ...upstream, connections } } }
}

function gatherReadiness(slots: readonly WorkerSlot[], server: ServerName) {
  // The workers return reports of the requested subject.
  return gatherReports(slots, { server, subject: 'readiness' }) as Promise<readonly CheckResult[][]>
}

async function reportServer(slots: readonly WorkerSlot[], server: ServerName): Promise<ServerReports> {
  const metrics = (await gatherReports(slots, { server, subject: 'metrics' })) as readonly Metrics[]
  return { server, metrics, readiness: (await gatherReadiness(slots, server)).flat() }
}

async function gatherReports(
  slots: readonly WorkerSlot[],
  request: ReportRequest,
): Promise<readonly Report[]> {
  const reports = await Promise.all(slots.map(slot => slot.report(request)))
  const own = { server: [], process: await readProcessMetrics() }
  return [...reports.filter(it => it !== undefined), ...(request.subject === 'metrics' ? [own] : [])]
}
