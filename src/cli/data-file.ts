import { join } from 'node:path'
import type { Settings } from '../config/index.ts'
import { makeFolder } from '../store/index.ts'

/** The file of the embedded FHIR server, in a folder that is there. */
export function findDataFile({ dataDir }: Settings): string {
  makeFolder(dataDir)
  return join(dataDir, 'fhir.db')
}
