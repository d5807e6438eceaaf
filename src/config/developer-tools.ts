import type { Settings } from './settings-tree.ts'
import { findLabProblems } from './start-problems.ts'

/** Parts of the servers that a setting turns on: the name of the setting, as in the administration API, and a title. */
export const FEATURES = [{ name: 'lab', title: 'Lab' }] as const

/** In the help of commands that need developer tools. */
export const FOR_TESTS = 'Only for tests: while the lab is on (see SMART_LAB).'

/** Why commands for tests may not run: off loopback they need everything that the start of servers with a lab needs (SETTING-9). */
export function findDeveloperToolsProblem(settings: Settings): string | undefined {
  return settings.developerTools
    ? findLabProblems(settings)[0]
    : 'it is for tests only, and SMART_LAB is not true'
}
