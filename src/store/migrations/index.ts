import type { Migration } from '../migration.ts'
import { schema } from './0001-schema.ts'
import { who } from './0002-who.ts'
import { makers } from './0003-makers.ts'
import { wrongProofs } from './0004-wrong-proofs.ts'
import { exportJobs } from './0005-export-jobs.ts'
import { agents } from './0006-agents.ts'
import { proposals } from './0007-proposals.ts'
import { registrants } from './0008-registrants.ts'

/** Every migration, in the order in which it is applied. */
export const migrations: readonly Migration[] = [
  schema,
  who,
  makers,
  wrongProofs,
  exportJobs,
  agents,
  proposals,
  registrants,
]
