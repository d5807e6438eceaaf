/** A prompt that a person chooses in the client. */
export const PREPARE = {
  name: 'prepare_visit',
  title: 'Prepare for this visit',
  description: 'Summarizes the record for the visit: what is active, what has changed, and what is open.',
} as const

const TEXT = `Prepare me for this visit.
1. Call get_patient_summary.
2. Search what has changed since the last encounter: results, conditions, medicines and documents.
3. Say in at most 15 lines: why the patient is probably here, what has changed, results outside their reference range, and what is open or overdue. Name the date and the reference of each fact. Say what the record does not show.`

export const PREPARE_MESSAGES = [{ role: 'user', content: { type: 'text', text: TEXT } }] as const
