import type { Bar, Person } from '../../web/index.ts'
import { isPatientUser } from '../clinician/clinician.ts'
import type { AuthSettings } from '../context.ts'
import type { Login } from '../login/login.ts'
import { paths } from '../paths.ts'

type SignedInPage = 'portal' | 'lab' | 'manage' | 'activity' | 'access-log' | 'account' | 'admin'

export function makeSignedInBar(login: Login, current?: SignedInPage): Bar {
  return {
    kind: 'portal',
    who: login.clinician.displayName,
    links: [
      ...(isPatientUser(login.clinician)
        ? []
        : [{ href: paths.portal, text: 'Patients', current: current === 'portal' }]),
      ...(login.mayUseLab ? [{ href: paths.lab, text: 'Lab', current: current === 'lab' }] : []),
      { href: paths.manage, text: 'Apps with access', current: current === 'manage' },
      ...(isPatientUser(login.clinician)
        ? [{ href: paths.accountAccessLog, text: 'Who looked', current: current === 'access-log' }]
        : []),
      ...(login.mayViewActivity
        ? [{ href: paths.activity, text: 'Activity', current: current === 'activity' }]
        : []),
      ...(login.admin ? [{ href: paths.admin, text: 'Administration', current: current === 'admin' }] : []),
      { href: paths.accountSignIns, text: 'Account', current: current === 'account' },
    ],
  }
}

/** Whether all patients on a page are sample patients of the embedded FHIR server. */
export function showsSampleData({ fhir }: AuthSettings, onPage: readonly Person[] = []): boolean {
  return fhir.upstreamUrl === undefined && fhir.samplePatients > 0 && onPage.every(({ sample }) => sample)
}
