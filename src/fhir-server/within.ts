import { type Access, isWithin, type Roster, tellsAbsence } from '../consent/index.ts'
import type { Resource } from '../fhir/index.ts'
import type { Letter } from '../scope/index.ts'
import type { Call, Context } from './call.ts'
import type { Problem } from './problem.ts'
import { resourceOf, type Stored } from './repository/stored.ts'

/** By what data are judged, and how references in them are read. */
interface Judge {
  readonly access: Access
  readonly baseUrl: string
  readonly roster: Roster
}

export function judgeOf({ baseUrl, roster }: Context, { access }: Call): Judge {
  return { access, baseUrl, roster }
}

/** Whether new content may be written, or written content be shown. */
export function reaches(judge: Judge, letter: Letter, resource: Resource): boolean {
  const reach = judge.access.reach(resource.resourceType, letter)
  return reach === 'everything' || isWithin(resource, reach, judge.baseUrl, judge.roster)
}

/** The same of what is stored, which is parsed only where its content decides. */
export function reachesStored(judge: Judge, letter: Letter, stored: Stored): boolean {
  const reach = judge.access.reach(stored.type, letter)
  return reach === 'everything' || isWithin(resourceOf(stored), reach, judge.baseUrl, judge.roster)
}

/**
 * What may be touched, or why not. Refused and absent are one answer where the caller may not be told the difference.
 */
export function found(
  judge: Judge,
  letter: Letter,
  type: string,
  id: string,
  stored: Stored | undefined,
): Stored | Problem {
  if (stored && reachesStored(judge, letter, stored)) return stored
  const reach = judge.access.reach(type, letter)
  return tellsAbsence(reach, type, id) ? { problem: 'absent', type, id } : { problem: 'out-of-reach' }
}
