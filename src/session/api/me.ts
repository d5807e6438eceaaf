import { type Static, Type } from '@sinclair/typebox'
import { parseReference } from '../../fhir/index.ts'
import { succeed } from '../failure.ts'
import { checkSession } from '../sessions/refresh-session.ts'
import type { Session } from '../sessions/session.ts'
import { defineRow, NoQuery } from './row.ts'

const Profile = Type.Object(
  {
    subject: Type.String({ description: 'Subject of the id_token.' }),
    fhirUser: Type.Optional(Type.String({ description: 'Practitioner/<practitioner_id>' })),
    name: Type.Optional(Type.String()),
    practitionerId: Type.Optional(
      Type.String({ description: 'Left out when the one who signed in is not a Practitioner.' }),
    ),
  },
  { additionalProperties: false },
)

/** The clinician profile (API-3), from the ID token that was validated at the launch. */
export const meRow = defineRow({
  path: '/api/me',
  title: 'Clinician',
  description: 'Who signed in.',
  scopes: ['openid', 'fhirUser'],
  query: NoQuery,
  body: Profile,
  extendsSession: true,
  answer: async visit => {
    const living = await checkSession(visit.context, visit.session)
    return living.ok ? succeed(profileOf(living.value)) : living
  },
})

function profileOf(session: Session): Static<typeof Profile> {
  return {
    subject: session.subject ?? '',
    ...userOf(session),
    ...(session.name === null ? {} : { name: session.name }),
  }
}

/** `fhirUser` is a URL: absolute, or relative to the FHIR base. */
function userOf({ fhirUser, fhirBaseUrl }: Session): { fhirUser?: string; practitionerId?: string } {
  const user = fhirUser === null ? undefined : parseReference(fhirUser, fhirBaseUrl)
  if (!user) return {}
  return {
    fhirUser: `${user.type}/${user.id}`,
    ...(user.type === 'Practitioner' ? { practitionerId: user.id } : {}),
  }
}
