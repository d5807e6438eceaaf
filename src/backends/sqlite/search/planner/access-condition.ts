import { isFailure } from '../../../../core/index.ts'
import { parseUncounted, type ResourceReference } from '../../../../fhir/index.ts'
import {
  type AccessFilter,
  type Constraint,
  type ConstraintGroup,
  groupConstraints,
  type Panel,
  type PanelMembership,
} from '../../../../smart/index.ts'
import type { Names } from '../../repository/names.ts'
import type { Repository } from '../../repository/repository.ts'
import { selectRange } from './clause-walk.ts'
import { buildOwnCondition } from './own-condition.ts'
import type { SearchScope } from './search-scope.ts'
import { all, any, FALSE, list, name, type Sql, sql, union } from './sql.ts'

type AccessContext = Pick<Repository, 'names' | 'baseUrl'>

/** Whether the resource in the row is within the access filter. */
export function buildAccessCondition(
  context: AccessContext,
  type: string,
  filter: Exclude<AccessFilter, 'everything'>,
  row: string,
  rid = `${row}.rid`,
): Sql {
  return any(
    groupConstraints(filter).map(group =>
      all([
        buildSubjectCondition(context.names, type, group.subject, row),
        buildQueriesCondition(context, type, group, row, rid),
      ]),
    ),
  )
}

/** The resources in the compartments of a filter that has no other constraints: few, so that a search starts there. */
export function selectCompartment(names: Names, type: string, filter: AccessFilter): Sql | undefined {
  if (filter === 'everything' || !filter.every(constraint => constraint.patient !== undefined))
    return undefined
  const patients = [...new Set(filter.flatMap(constraint => constraint.patient ?? []))]
  return selectOfPatients(names, type, patients)
}

/** The resources among which are all that are within an access filter; undefined if they are many, or no index finds them. */
export function findCandidates(
  context: AccessContext & Pick<SearchScope, 'isFew'>,
  type: string,
  filter: Exclude<AccessFilter, 'everything'>,
): Sql | undefined {
  const { names, isFew } = context
  const compartment = selectCompartment(names, type, filter)
  if (compartment) return compartment
  const panels = new Set(filter.flatMap(({ panel }) => panel ?? []))
  const isLarge = (panel: Panel) => !isFew(selectPanelPatients(names, panel), FEW_PATIENTS)
  if (filter.length > MAX_PARTS || panels.values().some(isLarge)) return undefined
  const parts = filter.map(constraint => selectByConstraint(context, type, constraint))
  const found = parts.flatMap(part => part ?? [])
  return found.length === parts.length ? union(found) : undefined
}

const MAX_PARTS = 50
const FEW_PATIENTS = 200

function selectByConstraint(
  { names, baseUrl }: AccessContext,
  type: string,
  { patient, panel, id, query = [] }: Constraint,
): Sql | undefined {
  const tid = names.typeId(type)
  if (id !== undefined) return sql`SELECT o.rid FROM resource o WHERE o.tid = ${tid} AND o.id = ${id}`
  if (patient !== undefined) return selectOfPatients(names, type, [patient])
  if (panel)
    return sql`SELECT c.rid FROM (${selectPanelPatients(names, panel)}) q
      CROSS JOIN compartment c ON c.patient = q.id AND c.tid = ${tid}`
  const clauses = query.map(([parameter, value]) => parseUncounted(type, parameter, value, baseUrl))
  const ranges = clauses.flatMap(clause =>
    isFailure(clause) ? [] : (selectRange(names, type, clause) ?? []),
  )
  return ranges[0]
}

/** The resources in the compartments of patients, in any version. */
export function selectOfPatients(names: Names, type: string, patients: readonly string[]): Sql {
  // SQLite reads the whole table for an empty list.
  const ids = list(patients.length === 0 ? [null] : patients)
  return sql`SELECT c.rid FROM compartment c WHERE c.patient IN (${ids}) AND c.tid = ${names.typeId(type)}`
}

/**
 * Whether the version in the row meets all of a constraint but its query. The row is one of `resource` or `version`;
 * `resourceRow` is the row of `resource`.
 */
export function buildSubjectCondition(
  names: Names,
  type: string,
  subject: ConstraintGroup['subject'],
  row: string,
  resourceRow = row,
): Sql {
  const { exclusive, patient, panel, id } = subject
  // An exclusive constraint is one of writes, which are checked by their content and not by a query.
  if (exclusive) return FALSE
  const parts: Sql[] = []
  if (patient !== undefined) parts.push(buildCompartmentCondition(names, type, patient, row))
  if (panel) parts.push(buildPanelCondition(names, panel, row))
  if (patient !== undefined || panel) parts.push(containsNoOther(names, subject, row))
  if (id !== undefined) parts.push(sql`${name(resourceRow)}.id = ${id}`)
  return all(parts)
}

function buildCompartmentCondition(names: Names, type: string, patient: string, row: string): Sql {
  const tid = names.typeId(type)
  const at = name(row)
  return sql`EXISTS (SELECT 1 FROM compartment c WHERE c.patient = ${patient} AND c.tid = ${tid} AND c.rid = ${at}.rid AND c.version = ${at}.version)`
}

function buildPanelCondition(names: Names, panel: Panel, row: string): Sql {
  const at = name(row)
  return sql`EXISTS (SELECT 1 FROM compartment c
    WHERE c.rid = ${at}.rid AND c.version = ${at}.version AND ${buildMemberCondition(names, panel, name('c.patient'))})`
}

/** Whether no contained resource is about a patient outside the constraint, as `satisfies` checks it. */
function containsNoOther(names: Names, { patient, panel }: ConstraintGroup['subject'], row: string): Sql {
  const at = name(row)
  const others = [
    ...(patient === undefined ? [] : [sql`h.patient <> ${patient}`]),
    ...(panel ? [sql`NOT ${buildMemberCondition(names, panel, name('h.patient'))}`] : []),
  ]
  return sql`NOT EXISTS (SELECT 1 FROM contained_patient h
    WHERE h.rid = ${at}.rid AND h.version = ${at}.version AND ${any(others)})`
}

/** Whether the search values of the resource in the row, which is not deleted, meet one of the queries. */
export function buildQueriesCondition(
  context: AccessContext,
  type: string,
  { queries }: ConstraintGroup,
  row: string,
  rid = `${row}.rid`,
): Sql {
  return any(
    queries.map(query =>
      all(
        query.map(([parameter, value]) => buildGranularCondition(context, type, parameter, value, row, rid)),
      ),
    ),
  )
}

function buildGranularCondition(
  { names, baseUrl }: AccessContext,
  type: string,
  parameter: string,
  value: string,
  row: string,
  rid: string,
): Sql {
  const clause = parseUncounted(type, parameter, value, baseUrl)
  // A parameter that cannot be evaluated on the resource alone grants nothing.
  if (isFailure(clause) || clause.kind === 'chain' || clause.kind === 'has') return FALSE
  return buildOwnCondition(names, type, clause, row, rid)
}

/** Panel membership, as stored now. */
export function createMembership({ database, names }: Repository): PanelMembership {
  return {
    includes(panel, patient) {
      const { text, values } = sql`SELECT ${buildMemberCondition(names, panel, sql`${patient}`)}`
      return database.rows(text, values)[0]?.[0] === 1
    },
  }
}

/** Whether a patient is on a panel. The entries of the index are those of current resources. */
function buildMemberCondition(names: Names, panel: Panel, patient: Sql): Sql {
  const { patients, organizations, careTeams, member } = panel
  return sql`(${any([
    ...(patients.size > 0 ? [sql`${patient} IN (${selectValues([...patients])})`] : []),
    ...(organizations.length > 0 ? [buildManagedCondition(names, organizations, patient)] : []),
    ...(careTeams.length > 0
      ? [buildTeamCondition(names, sql`t.id IN (${selectValues(careTeams)})`, patient)]
      : []),
    ...(member ? [buildTeamCondition(names, buildParticipantCondition(names, member), patient)] : []),
  ])})`
}

function selectValues(values: readonly string[]): Sql {
  return sql`SELECT value AS id FROM json_each(${JSON.stringify(values)})`
}

function buildManagedCondition(names: Names, organizations: readonly string[], patient: Sql): Sql {
  const tid = names.typeId('Patient')
  const nid = names.parameterId('Patient', 'organization')
  // The plus keeps SQLite from searching the index for each organization in turn.
  return sql`EXISTS (SELECT 1 FROM resource p CROSS JOIN reference e ON e.rid = p.rid AND e.nid = ${nid}
    AND +e.id IN (${selectValues(organizations)}) AND e.type = 'Organization' WHERE p.tid = ${tid} AND p.id = ${patient})`
}

/** Only active care teams give access: not proposed, suspended, ended or mistaken ones. */
function buildTeamCondition(names: Names, condition: Sql, patient: Sql): Sql {
  const nid = names.parameterId('CareTeam', 'patient')
  return sql`EXISTS (SELECT 1 FROM reference e CROSS JOIN resource t ON t.rid = e.rid
    WHERE e.nid = ${nid} AND e.id = ${patient} AND e.type = 'Patient' AND ${condition} AND ${buildActiveCondition(names)})`
}

function buildParticipantCondition(names: Names, { type, id }: ResourceReference): Sql {
  const nid = names.parameterId('CareTeam', 'participant')
  return sql`EXISTS (SELECT 1 FROM reference m WHERE m.rid = t.rid AND m.nid = ${nid} AND m.id = ${id} AND m.type = ${type})`
}

function buildActiveCondition(names: Names): Sql {
  const nid = names.parameterId('CareTeam', 'status')
  return sql`EXISTS (SELECT 1 FROM token s WHERE s.rid = t.rid AND s.nid = ${nid} AND s.code = 'active')`
}

/** The ids of the patients on a panel, as a subquery with one column. */
function selectPanelPatients(names: Names, { patients, organizations, careTeams, member }: Panel): Sql {
  const team = names.typeId('CareTeam')
  return union([
    selectValues([...patients]),
    ...(organizations.length > 0 ? [selectManagedPatients(names, organizations)] : []),
    ...(careTeams.length > 0
      ? [
          selectTeamPatients(
            names,
            sql`resource t WHERE t.tid = ${team} AND t.id IN (${selectValues(careTeams)})`,
          ),
        ]
      : []),
    ...(member ? [selectTeamPatients(names, selectTeamsOf(names, member))] : []),
  ])
}

function selectManagedPatients(names: Names, organizations: readonly string[]): Sql {
  const nid = names.parameterId('Patient', 'organization')
  return sql`SELECT p.id FROM reference e CROSS JOIN resource p ON p.rid = e.rid
    WHERE e.nid = ${nid} AND e.id IN (${selectValues(organizations)}) AND e.type = 'Organization'`
}

function selectTeamsOf(names: Names, { type, id }: ResourceReference): Sql {
  const nid = names.parameterId('CareTeam', 'participant')
  return sql`reference t WHERE t.nid = ${nid} AND t.id = ${id} AND t.type = ${type}`
}

function selectTeamPatients(names: Names, teams: Sql): Sql {
  const nid = names.parameterId('CareTeam', 'patient')
  return sql`SELECT e.id FROM (SELECT t.rid FROM ${teams} AND ${buildActiveCondition(names)}) f
    CROSS JOIN reference e ON e.rid = f.rid AND e.nid = ${nid} AND e.type = 'Patient'`
}
