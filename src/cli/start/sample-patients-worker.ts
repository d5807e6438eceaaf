/** The worker thread of sample-patients.ts. */
import { workerData } from 'node:worker_threads'
import { openRepository } from '../../backends/sqlite/index.ts'
import { samplePatients } from '../../sample-patients/index.ts'
import type { SampleOrder } from './sample-patients.ts'

const { dataFile, baseUrl, count, now } = workerData as SampleOrder
const repository = openRepository({ file: dataFile, baseUrl })
try {
  repository.loadInBatches(JSON.stringify({ count, now }), samplePatients({ count, now }))
} finally {
  repository.close()
}
