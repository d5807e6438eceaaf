import type { KeptRecord } from '../../audit/index.ts'

/** A record in one line: time, result, what it was, whose, by whom, and what decided or why it ended so. */
export function lineOf(record: KeptRecord): string {
  const { at, allowed, status, kind, method, request, decided_by, reason } = record
  const what = kind === 'fhir' || kind === 'api' ? `${method ?? ''} ${request || '[base]'}` : kind
  const facts = [
    record.patient_id && `patient=${record.patient_id}`,
    record.patients && `patients=${record.patients.trim().replaceAll(' ', ',')}`,
    record.client_id && `client=${record.client_id}`,
    record.fhir_user && `user=${record.fhir_user}`,
    record.launch_id && `launch=${record.launch_id}`,
    allowed && decided_by && `by=${decided_by}`,
    reason,
  ]
  const result = `${allowed ? 'allowed' : 'refused'} ${status}`
  return [new Date(at).toISOString(), result, what, ...facts.filter(Boolean)].join('  ')
}
