import { findDeveloperToolsProblem, type Settings } from '../config/index.ts'
import { CommandFailure } from './command.ts'

/** For commands that are for tests only. */
export function requireDeveloperTools(settings: Settings, action: string): void {
  const problem = findDeveloperToolsProblem(settings)
  if (problem !== undefined) throw new CommandFailure(`Cannot ${action}: ${problem}`)
}
