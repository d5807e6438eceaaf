/** The worker thread of sample-patients.ts. */
import { parentPort, workerData } from 'node:worker_threads'
import { openRepository } from '../../backends/sqlite/index.ts'
import { samplePatients } from '../../sample-patients/index.ts'
import { reportPatients, type SampleOrder } from './sample-patients.ts'

const { dataFile, baseUrl, count, now } = workerData as SampleOrder
using repository = openRepository({ file: dataFile, baseUrl })
const resources = reportPatients(samplePatients({ count, now }), done => parentPort?.postMessage(done))
repository.loadInBatches(JSON.stringify({ count, now }), resources)
