import { findLabProblems, type Settings } from '../config/index.ts'
import { CommandFailure } from './command.ts'

/** Commands for tests need the lab, and off loopback everything that the start of servers with a lab needs (SETTING-9). */
export function requireLab(settings: Settings, action: string): void {
  if (!settings.lab)
    throw new CommandFailure(`Cannot ${action}: it is for tests only, and SMART_LAB is not true`)
  const [problem] = findLabProblems(settings)
  if (problem !== undefined) throw new CommandFailure(`Cannot ${action}: ${problem}`)
}
