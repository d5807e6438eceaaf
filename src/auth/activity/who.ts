import type { AuthSettings } from '../context.ts'

/** Who may see the activity: those whom the setting names; without it, on loopback, every clinician. */
export function seesActivity({ audit, onLoopback }: AuthSettings, username: string): boolean {
  return audit.activityClinicians?.includes(username) ?? onLoopback
}
