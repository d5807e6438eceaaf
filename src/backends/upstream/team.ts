import type { Failure } from '../../fhir-api/index.ts'
import type { Panel } from '../../smart/index.ts'

/** An active care team. A team with another status gives no access. */
export interface Team {
  readonly id: string | undefined
  /** Their ids. */
  readonly patients: readonly string[]
  /** `Practitioner/1` */
  readonly members: readonly string[]
}

/** The test of whether a team gives a panel its patients. */
export function createTeamTest({ careTeams, member }: Panel): (team: Team) => boolean {
  const name = member && `${member.type}/${member.id}`
  return ({ id, members }) =>
    (id !== undefined && careTeams.includes(id)) || (name !== undefined && members.includes(name))
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
