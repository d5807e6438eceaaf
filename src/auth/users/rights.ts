import { RECENT_SECONDS } from '../base/limits.ts'
import type { AuthSettings } from '../base/settings.ts'
import { type Clinician, isPatientUser } from '../base/user.ts'

type RightsSettings = Pick<AuthSettings, 'audit' | 'onLoopback' | 'developerTools'>

interface User {
  readonly clinician: Pick<Clinician, 'username' | 'fhirUserId'>
  readonly admin: boolean
}

/** While developer tools are on, clinicians are developers on loopback, elsewhere only administrators. */
export function isDeveloper(
  { onLoopback, developerTools }: RightsSettings,
  { clinician, admin }: User,
): boolean {
  return developerTools && !isPatientUser(clinician) && (onLoopback || admin)
}

/** The clinicians in the setting may view the activity page; by default all on loopback, and developers. */
export function mayViewActivity(settings: RightsSettings, user: User): boolean {
  const { username } = user.clinician
  if (isPatientUser(user.clinician)) return false
  const isAllowed = settings.onLoopback || isDeveloper(settings, user)
  return settings.audit.activityClinicians?.includes(username) ?? isAllowed
}

/** Whether the user authenticated in the last minutes, and did so provably. */
export function isRecentLogin(
  login: { readonly isAuthTimeKnown: boolean; readonly authTime: number },
  now: number,
): boolean {
  return login.isAuthTimeKnown && now - login.authTime < RECENT_SECONDS * 1000
}
