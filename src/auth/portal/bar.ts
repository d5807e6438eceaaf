import type { Bar } from '../../web/index.ts'
import type { Login } from '../login/login.ts'
import { paths } from '../paths.ts'

export function makeSignedInBar(login: Login, current?: 'portal' | 'manage' | 'activity'): Bar {
  return {
    kind: 'portal',
    who: login.clinician.displayName,
    links: [
      { href: paths.portal, text: 'Patients', current: current === 'portal' },
      { href: paths.manage, text: 'Apps with access', current: current === 'manage' },
      ...(login.mayViewActivity
        ? [{ href: paths.activity, text: 'Activity', current: current === 'activity' }]
        : []),
    ],
  }
}
