import { parseReference } from '../fhir/index.ts'
import { type Action, type Html, html } from '../web/ui/index.ts'
import { type AppSettings, linkStart } from './context.ts'
import type { Session } from './session.ts'

/**
 * Who reads a page: staff, a patient with the own record, or somebody who acts for a patient. Without a session nobody is known.
 */
export type Audience = 'staff' | 'self' | 'relative' | 'unknown'

export function findAudience({
  fhirUser,
  fhirBaseUrl,
  patientId,
}: Pick<Session, 'fhirUser' | 'fhirBaseUrl' | 'patientId'>): Exclude<Audience, 'unknown'> {
  const user = fhirUser === null ? undefined : parseReference(fhirUser, fhirBaseUrl)
  if (user?.type === 'Patient') return user.id === patientId ? 'self' : 'relative'
  return user?.type === 'RelatedPerson' ? 'relative' : 'staff'
}

/** The link of the top bar to the user's start page at the auth server. */
export function linkHome(settings: AppSettings, audience: Audience): Action {
  return linkStart(settings, audience === 'staff' ? 'Patients' : 'Start')
}

/** How to open a record again, after "To continue, ", and its buttons. */
export function describeWayOn(
  settings: AppSettings,
  audience: Audience,
): { readonly text: Html; readonly actions: readonly Action[] } {
  return audience === 'staff'
    ? {
        text: html`<b>launch the app again</b> from the patient list`,
        actions: [linkStart(settings, 'Go to patients')],
      }
    : {
        text: html`<b>open the app again</b> and choose the record`,
        actions: [
          { href: '/launch', text: 'Open the app again' },
          linkStart(settings, 'Go to the start page'),
        ],
      }
}
