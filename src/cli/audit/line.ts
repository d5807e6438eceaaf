import { formatRepeats, type KeptRecord } from '../../audit/index.ts'

/** A record in one line: time, result, what it was, whose, by whom, and what decided or why it ended so. */
export function formatLine(record: KeptRecord): string {
  const { at, allowed, status, decided_by, reason } = record
  const facts = [
    record.patient_id && `patient=${record.patient_id}`,
    record.patients && `patients=${record.patients.trim().replaceAll(' ', ',')}`,
    record.client_id && `client=${record.client_id}`,
    record.fhir_user && `user=${record.fhir_user}`,
    record.launch_id && `launch=${record.launch_id}`,
    record.repeats !== null && record.address && `from=${record.address}`,
    allowed && decided_by && `by=${decided_by}`,
    reason,
  ]
  const result = `${allowed ? 'allowed' : 'refused'} ${status}`
  return [new Date(at).toISOString(), result, whatOf(record), ...facts.filter(Boolean)].join('  ')
}

function whatOf({ kind, method, request, repeats }: KeptRecord): string {
  if (repeats !== null) return `${kind} (${formatRepeats(repeats)})`
  const hasRequest = kind === 'fhir' || kind === 'api' || kind === 'admin'
  return hasRequest ? `${method ?? ''} ${request || '[base]'}` : kind
}
