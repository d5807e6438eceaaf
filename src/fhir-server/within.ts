import {
  type Access,
  hiddenProblem,
  isWithin,
  isWritable,
  type JudgedBefore,
  type Reach,
  type Roster,
} from '../consent/index.ts'
import { type ExactResource, plainOf, type Resource } from '../fhir/index.ts'
import type { Letter } from '../scope/index.ts'
import type { Call, Context } from './call.ts'
import type { Problem } from './problem.ts'
import { resourceOf, type Stored } from './repository/stored.ts'

/** By what data are judged, and how references in them are read. */
interface Judge {
  readonly access: Access
  readonly baseUrl: string
  readonly roster: Roster
  readonly judgedBefore: JudgedBefore
}

export function judgeOf({ baseUrl, roster, judgedBefore }: Context, { access }: Call): Judge {
  return { access, baseUrl, roster, judgedBefore }
}

/** Whether new content may be written. */
export function accepts(judge: Judge, letter: 'c' | 'u', resource: ExactResource): boolean {
  const reach = judge.access.reach(resource.resourceType, letter)
  return reach === 'everything' || isWritable(plainOf(resource), reach, judge.baseUrl, judge.roster)
}

/** Whether content may be touched with a letter. */
export function reaches(judge: Judge, letter: Letter, resource: Resource): boolean {
  const reach = judge.access.reach(resource.resourceType, letter)
  return isWithin(resource, reach, judge.baseUrl, judge.roster)
}

/** The same of what is stored, which is parsed only where its content decides. */
export function reachesStored(judge: Judge, letter: Letter, stored: Stored): boolean {
  const reach = judge.access.reach(stored.type, letter)
  if (reach === 'everything') return true
  const { access, judgedBefore, baseUrl, roster } = judge
  if (hasPanel(reach)) return isWithin(resourceOf(stored), reach, baseUrl, roster)
  const place = `${letter}${stored.rid}/${stored.version}`
  if (judgedBefore.recall(access, place, stored.content)) return true
  const within = isWithin(resourceOf(stored), reach, baseUrl)
  if (within) judgedBefore.remember(access, place, stored.content)
  return within
}

/** Who is on a panel changes with the data, so that nothing found by it holds for the next time. */
function hasPanel(reach: Reach): boolean {
  return reach !== 'everything' && reach.some(limit => limit.panel)
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
  return hiddenProblem(judge.access, letter, type, id)
}
