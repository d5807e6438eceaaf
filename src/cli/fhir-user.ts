import { failMisuse } from './command.ts'

/** Who can be the `fhirUser` of a token. */
const USERS = ['Practitioner', 'PractitionerRole', 'Patient', 'RelatedPerson', 'Person']

export interface FhirUser {
  readonly type: string
  readonly id: string
}

/** Reads `--fhir-user` alike in every command: an id is that of a Practitioner. */
export function readFhirUser(text: string, fhirBaseUrl: string): FhirUser {
  const below = text.startsWith(`${fhirBaseUrl}/`) ? text.slice(fhirBaseUrl.length + 1) : text
  const [, type = 'Practitioner', id] = /^(?:([A-Za-z]+)\/)?([A-Za-z0-9.-]{1,64})$/.exec(below) ?? []
  if (id !== undefined && USERS.includes(type)) return { type, id }
  throw failMisuse(
    'Cannot use --fhir-user: expected the id of a Practitioner, or for example Practitioner/<id>',
  )
}
