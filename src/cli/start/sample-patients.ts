import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { findOwnProgram } from '../../core/index.ts'
import type { Resource } from '../../fhir/index.ts'
import type { Closing, PrintLine } from './parts.ts'

export interface SampleOrder {
  readonly dataFile: string
  readonly baseUrl: string
  readonly count: number
  readonly now: number
}

/**
 * Loads the sample patients on the first start of the embedded server (FHIR-12), in a separate thread while this one loads
 * the rest of the program. A start after an interrupted one loads the rest of the same patients.
 */
export async function loadSamplePatients(
  order: SampleOrder,
  closing: Closing,
  printLine: PrintLine,
): Promise<void> {
  if (order.count === 0) return
  const workerData = existsSync(order.dataFile) ? await findOpenOrder(order) : order
  if (!workerData) return
  printLine(`Creating ${workerData.count} sample patient${workerData.count === 1 ? '' : 's'}…`)
  const worker = new Worker(findOwnProgram('src/cli/start/sample-patients-worker'), {
    workerData,
    // Without it, the memory of the process would grow by 50 MB more.
    resourceLimits: { maxYoungGenerationSizeMb: 12 },
  })
  worker.on('message', (done: number) => printLine(`${done} of ${workerData.count} sample patients…`))
  closing.add(() => worker.terminate())
  // Rejects if the thread fails: `once` listens for its errors.
  await once(worker, 'exit')
}

/** The order that an earlier start did not complete, or this one if there are no resources. */
async function findOpenOrder(order: SampleOrder): Promise<SampleOrder | undefined> {
  const { openRepository } = await import('../../backends/sqlite/index.ts')
  using repository = openRepository({ file: order.dataFile, baseUrl: order.baseUrl })
  const interrupted = repository.findInterruptedLoad()
  if (interrupted !== undefined) return { ...order, ...JSON.parse(interrupted) }
  return repository.count() === 0 ? order : undefined
}

const PATIENTS_A_REPORT = 500

/** Reports how many patients are done, because thousands take minutes. */
export function* reportPatients(
  resources: Iterable<Resource>,
  report: (done: number) => void,
): Generator<Resource> {
  let begun = 0
  for (const resource of resources) {
    if (resource.resourceType === 'Patient' && begun++ > 0 && begun % PATIENTS_A_REPORT === 1)
      report(begun - 1)
    yield resource
  }
}
