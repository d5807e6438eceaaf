import type { Settings } from '../../config/index.ts'
import { CommandFailure } from '../command.ts'
import type { ServerName } from './server-names.ts'

/**
 * Stops a start that could not keep the promise of a setting: each of these changes who sees what, and going on
 * without it would be silent.
 */
export function refuseUnsupported(names: readonly ServerName[], { fhir }: Settings): void {
  if (!names.includes('fhir')) return
  const unsupported = fhir.policyFile !== undefined ? 'SMART_POLICY_FILE' : undefined
  if (unsupported !== undefined) {
    throw new CommandFailure(`Cannot start the fhir server: ${unsupported} is not supported yet`)
  }
}
