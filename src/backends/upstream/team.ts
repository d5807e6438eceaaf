import { remember } from '../../core/index.ts'
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

/** The result of a search for teams. Requests that share the search share its index. */
export class Teams {
  readonly all: readonly Team[]
  #byPatient: ReadonlyMap<string, readonly Team[]> | undefined

  constructor(all: readonly Team[]) {
    this.all = all
  }

  of(patient: string): readonly Team[] {
    this.#byPatient ??= indexByPatient(this.all)
    return this.#byPatient.get(patient) ?? []
  }
}

function indexByPatient(teams: readonly Team[]): ReadonlyMap<string, readonly Team[]> {
  const byPatient = new Map<string, Team[]>()
  for (const team of teams) for (const id of team.patients) remember(byPatient, id, () => []).push(team)
  return byPatient
}

/** All care teams of a member. */
export interface KnownTeams {
  /** `Practitioner/1` */
  readonly member: string
  readonly teams: Teams
}

/** Lookups of a member's teams that are under way. No result is kept after that. */
export type MemberLookups = Map<string, Promise<FewTeams>>

export type FewTeams = Teams | 'too-many' | Failure
