import type { Failure } from '../../fhir-api/index.ts'
import type { Panel } from '../../smart/index.ts'

/** An active care team. A team with another status gives no access. */
export interface Team {
  readonly id: string | undefined
  readonly patients: ReadonlySet<string>
  readonly members: ReadonlySet<string>
}

export function isTeamOfPanel({ id, members }: Team, { careTeams, member }: Panel): boolean {
  return (
    (id !== undefined && careTeams.includes(id)) ||
    (member !== undefined && members.has(`${member.type}/${member.id}`))
  )
}

/** All care teams of a member. */
export interface KnownTeams {
  /** `Practitioner/1` */
  readonly member: string
  readonly teams: readonly Team[]
}

/** Lookups of a member's teams that are under way. No result is kept after that. */
export type MemberLookups = Map<string, Promise<FewTeams>>

export type FewTeams = readonly Team[] | 'too-many' | Failure
