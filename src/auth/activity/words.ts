import type { KeptRecord } from '../../audit/index.ts'

/** What decided, and why, in words for whoever builds an app. */
export interface DecidedBy {
  /** A scope is shown as code. */
  readonly scope?: string
  readonly title?: string
  readonly why: string
}

/** The people and apps that records name by their ids. */
export interface Names {
  readonly clinician: (id: string) => string | undefined
  readonly app: (id: string) => string | undefined
}

export function decidedBy(record: KeptRecord, names: Names): DecidedBy {
  const { allowed, decided_by: by, reason, status } = record
  if (!allowed) return { ...refusedBy(status, by), why: reason ?? 'Refused' }
  if (by === 'public') return { title: 'No scope needed', why: 'Public: needs no token' }
  if (by === 'entries') return { title: 'Each entry by itself', why: 'A batch or transaction' }
  if (by === 'fhirUser') return { scope: 'fhirUser', why: 'A token may read its own user' }
  if (by === null) return { title: 'Not guarded', why: 'This server asks for no token' }
  return { scope: by, why: reachText(record, by, names) }
}

function refusedBy(status: number, by: string | null): Pick<DecidedBy, 'scope' | 'title'> {
  if (by !== null && by !== 'entries') return { scope: by }
  if (status === 401) return { title: 'Token not accepted' }
  if (status === 403) return { title: 'No granted scope' }
  return { title: status === 503 ? 'Not decided' : 'Not understood' }
}

function reachText(record: KeptRecord, scope: string, names: Names): string {
  const did = deed(record.interaction ?? '')
  if (scope.startsWith('patient/')) {
    return record.resource_type === 'Patient' && record.resource_id === record.patient_id
      ? `${did} of the patient in the token`
      : `${did} inside this patient’s record`
  }
  if (scope.startsWith('system/')) return `${did} by the app itself`
  const name = record.subject === null ? undefined : names.clinician(record.subject)
  return `${did} by ${name ?? 'a user'}`
}

function deed(interaction: string): string {
  if (interaction.startsWith('search')) return 'Search'
  if (interaction.startsWith('history') || interaction === 'vread') return 'Earlier versions'
  if (interaction.startsWith('update') || interaction.startsWith('patch')) return 'Change'
  if (interaction.startsWith('delete')) return 'Removal'
  if (interaction === 'create') return 'New record'
  return interaction === 'operation' ? 'Operation' : 'Read'
}

/** The app that asked. */
export function appText({ client_id: client }: KeptRecord, names: Names): string {
  if (client === null) return 'No app'
  return client === 'sallyport-portal' ? 'Patient list' : (names.app(client) ?? client)
}
