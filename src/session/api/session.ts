import { type Static, Type } from '@sinclair/typebox'
import { succeed } from '../failure.ts'
import { checkSession } from '../sessions/refresh-session.ts'
import type { Session } from '../sessions/session.ts'
import { defineRow, NoQuery } from './row.ts'

const SessionMetadata = Type.Object(
  {
    sessionId: Type.String({
      description: 'Public name of the session. Send it as X-Session-Id with every request of the same page.',
    }),
    patientId: Type.String(),
    encounterId: Type.Optional(Type.String({ description: 'Left out when the launch has none.' })),
    needPatientBanner: Type.Boolean(),
    fhirBaseUrl: Type.String({ format: 'uri' }),
    scopes: Type.Array(Type.String(), { description: 'The granted scopes.' }),
    expiresAt: Type.String({ format: 'date-time', description: 'When the session ends, in UTC.' }),
    secondsRemaining: Type.Integer({ minimum: 0 }),
  },
  { additionalProperties: false },
)

/** Session metadata (API-2). A request does not extend the session, because a countdown polls it. */
export const sessionRow = defineRow({
  path: '/api/session',
  title: 'Session',
  description: 'What the session is about and when it ends. Asking does not extend it.',
  scopes: [],
  query: NoQuery,
  body: SessionMetadata,
  extendsSession: false,
  answer: async visit => {
    const living = await checkSession(visit.context, visit.session)
    return living.ok ? succeed(metadataOf(living.value, visit.context.clock())) : living
  },
})

function metadataOf(session: Session, now: number): Static<typeof SessionMetadata> {
  return {
    sessionId: session.sessionId,
    patientId: session.patientId,
    ...(session.encounterId === null ? {} : { encounterId: session.encounterId }),
    needPatientBanner: session.needPatientBanner,
    fhirBaseUrl: session.fhirBaseUrl,
    scopes: session.scope.split(' ').filter(scope => scope !== ''),
    expiresAt: new Date(session.endsAt).toISOString(),
    secondsRemaining: Math.max(0, Math.floor((session.endsAt - now) / 1000)),
  }
}
