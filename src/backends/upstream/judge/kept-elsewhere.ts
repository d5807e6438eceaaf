import type { Interaction } from '../../../fhir/index.ts'
import { findExcludedType } from '../../../fhir-api/index.ts'

/** AuditEvents are served from the audit trail, and never taken from an upstream. */
export const KEPT_ELSEWHERE: ReadonlySet<string> = new Set(['AuditEvent'])

export function isKeptElsewhere(interaction: Interaction): boolean {
  return findExcludedType(interaction, KEPT_ELSEWHERE) !== undefined
}
