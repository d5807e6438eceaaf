import type { Session } from '../sessions/session.ts'

/**
 * A server that does not know `patient` answers with everybody's records. What names another patient is left out, also
 * where it is written as an address of the same server under another name.
 */
export function isOfPatient(resource: object, { patientId }: Pick<Session, 'patientId'>): boolean {
  const subject: unknown = 'subject' in resource ? resource.subject : undefined
  if (typeof subject !== 'object' || subject === null || !('reference' in subject)) return false
  const [, id] =
    /(?:^|\/)Patient\/([A-Za-z0-9.-]{1,64})(?:\/_history\/[^/]+)?$/.exec(String(subject.reference)) ?? []
  return id === patientId
}
