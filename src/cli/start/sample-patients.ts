import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { Closing, Tell } from './parts.ts'

export interface SampleOrder {
  readonly dataFile: string
  readonly baseUrl: string
  readonly count: number
  readonly now: number
}

/**
 * Loads the sample patients on the first start of the embedded server (FHIR-12), in a separate thread while this one loads
 * the rest of the program, and in one transaction: an interrupted start leaves no partial data.
 */
export async function loadSamplePatients(order: SampleOrder, closing: Closing, tell: Tell): Promise<void> {
  if (order.count === 0) return
  if (existsSync(order.dataFile) && !(await isEmpty(order))) return
  tell(`Making ${order.count} sample patient${order.count === 1 ? '' : 's'}…`)
  const worker = new Worker(new URL('./sample-patients-worker.ts', import.meta.url), { workerData: order })
  closing.add(() => worker.terminate())
  // Rejects if the thread fails: `once` listens for its errors.
  await once(worker, 'exit')
}

async function isEmpty({ dataFile, baseUrl }: SampleOrder): Promise<boolean> {
  const { openRepository } = await import('../../backends/sqlite/index.ts')
  const repository = openRepository({ file: dataFile, baseUrl })
  try {
    return repository.count() === 0
  } finally {
    repository.close()
  }
}
