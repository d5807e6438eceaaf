import type { Settings } from '../../config/index.ts'
import { RECENT_SECONDS } from '../base/limits.ts'
import { type AuthUser, isPatientUser, opensRecords } from '../base/user.ts'

type RightsSettings = Pick<Settings, 'audit' | 'onLoopback' | 'developerTools'>

interface SignedIn {
  readonly user: Pick<AuthUser, 'username' | 'fhirUserId'>
  readonly admin: boolean
}

/** While developer tools are on, clinicians are developers on loopback, elsewhere only administrators. */
export function isDeveloper(
  { onLoopback, developerTools }: RightsSettings,
  { user, admin }: SignedIn,
): boolean {
  return developerTools && isClinician(user) && (onLoopback || admin)
}

/** The clinicians in the setting may view the activity page; by default all on loopback, and developers. */
export function mayViewActivity(settings: RightsSettings, login: SignedIn): boolean {
  if (!isClinician(login.user)) return false
  const isAllowed = settings.onLoopback || isDeveloper(settings, login)
  return settings.audit.activityClinicians?.includes(login.user.username) ?? isAllowed
}

function isClinician(user: SignedIn['user']): boolean {
  return !isPatientUser(user) && opensRecords(user)
}

/** Whether the user authenticated in the last minutes, and did so provably. */
export function isRecentLogin(
  login: { readonly isAuthTimeKnown: boolean; readonly authTime: number },
  now: number,
): boolean {
  return login.isAuthTimeKnown && now - login.authTime < RECENT_SECONDS * 1000
}
