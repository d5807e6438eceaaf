import type { Person } from '../../../web/person/index.ts'
import { type AuthUser, findOwnPatient } from '../../base/user.ts'
import type { OwnRecord } from '../../users/own-records.ts'

/** A record in the words of the patient or relative who reads the page. */
export interface WhoseRecord {
  readonly patient: string
  readonly isOwn: boolean
  /** `your record`, or `the record of Zoë Alabaster`. */
  readonly record: string
  /** `your`, or `Zoë Alabaster’s`. */
  readonly possessive: string
}

/** The name of the patient may be unavailable. */
export function describeWhose(user: AuthUser, people: readonly Person[], patient: string): WhoseRecord {
  if (findOwnPatient(user) === patient)
    return { patient, isOwn: true, possessive: 'your', record: 'your record' }
  const person = people.find(({ id }) => id === patient)
  const name = person && formatFullName(person)
  return name === undefined
    ? { patient, isOwn: false, possessive: 'the', record: 'the record' }
    : { patient, isOwn: false, possessive: `${name}’s`, record: `the record of ${name}` }
}

/** What a patient is to the user: `You`, `Your child`. */
export function describeRelation(records: readonly OwnRecord[], patient: string): string {
  return records.find(({ patientId }) => patientId === patient)?.relation ?? 'You act for this person'
}

/** A name as people say it: `Zoë Alabaster`. */
export function formatFullName({ name }: Person): string {
  return [name.given, name.family].filter(Boolean).join(' ') || (name.text ?? 'a patient without a name')
}
