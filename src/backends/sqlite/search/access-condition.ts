import { parseSearch } from '../../../fhir/index.ts'
import {
  type AccessFilter,
  type ConstraintGroup,
  groupConstraints,
  type Panel,
  type PanelMembership,
} from '../../../smart/index.ts'
import type { Names } from '../repository/names.ts'
import type { Repository } from '../repository/repository.ts'
import { buildOwnCondition } from './own-condition.ts'
import { all, any, join, list, name, type Sql, sql } from './sql.ts'

type AccessContext = Pick<Repository, 'names' | 'baseUrl'>

/** Whether the resource in the row is within the access filter. */
export function buildAccessCondition(
  context: AccessContext,
  type: string,
  filter: Exclude<AccessFilter, 'everything'>,
  row: string,
): Sql {
  return any(
    groupConstraints(filter).map(group =>
      all([
        buildSubjectCondition(context.names, type, group.subject, row),
        buildQueriesCondition(context, type, group, row),
      ]),
    ),
  )
}

/** The resources in the compartments of a filter that has no other constraints: few, so that a search starts there. */
export function selectCompartment(names: Names, type: string, filter: AccessFilter): Sql | undefined {
  if (filter === 'everything' || !filter.every(constraint => constraint.patient !== undefined))
    return undefined
  const patients = [...new Set(filter.flatMap(constraint => constraint.patient ?? []))]
  return sql`SELECT c.rid FROM compartment c WHERE c.patient IN (${list(patients)}) AND c.tid = ${names.typeId(type)}`
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
  if (exclusive) return name('0')
  const parts: Sql[] = []
  if (patient !== undefined) parts.push(buildCompartmentCondition(names, type, patient, row))
  if (panel) parts.push(buildPanelCondition(names, type, panel, row))
  if (patient !== undefined || panel) parts.push(containsNoOther(names, subject, row))
  if (id !== undefined) parts.push(sql`${name(resourceRow)}.id = ${id}`)
  return all(parts)
}

function buildCompartmentCondition(names: Names, type: string, patient: string, row: string): Sql {
  const [tid, at] = [names.typeId(type), name(row)]
  return sql`EXISTS (SELECT 1 FROM compartment c WHERE c.patient = ${patient} AND c.tid = ${tid} AND c.rid = ${at}.rid AND c.version = ${at}.version)`
}

function buildPanelCondition(names: Names, type: string, panel: Panel, row: string): Sql {
  const [tid, at] = [names.typeId(type), name(row)]
  return sql`EXISTS (SELECT 1 FROM (${selectPanelPatients(names, panel)}) q CROSS JOIN compartment c
    ON c.patient = q.id AND c.tid = ${tid} AND c.rid = ${at}.rid AND c.version = ${at}.version)`
}

/** Whether no contained resource is about a patient outside the constraint, as `satisfies` checks it. */
function containsNoOther(names: Names, { patient, panel }: ConstraintGroup['subject'], row: string): Sql {
  const at = name(row)
  const others = [
    ...(patient === undefined ? [] : [sql`h.patient <> ${patient}`]),
    ...(panel ? [sql`h.patient NOT IN (${selectPanelPatients(names, panel)})`] : []),
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
): Sql {
  return any(
    queries.map(query =>
      all(query.map(([parameter, value]) => buildGranularCondition(context, type, parameter, value, row))),
    ),
  )
}

function buildGranularCondition(
  { names, baseUrl }: AccessContext,
  type: string,
  parameter: string,
  value: string,
  row: string,
): Sql {
  const clause = parseSearch(type, parameter, value, baseUrl)
  // A parameter that cannot be evaluated on the resource alone grants nothing.
  if (clause.kind === 'error' || clause.kind === 'chain' || clause.kind === 'has') return name('0')
  return buildOwnCondition(names, type, clause, row)
}

/** Panel membership, as stored now. */
export function createMembership({ database, names }: Repository): PanelMembership {
  return {
    includes(panel, patient) {
      const { text, values } =
        sql`SELECT 1 FROM (${selectPanelPatients(names, panel)}) WHERE id = ${patient} LIMIT 1`
      return database.rows(text, values).length > 0
    },
  }
}

/** The ids of the patients on a panel, as a subquery with one column `id`. */
function selectPanelPatients(names: Names, panel: Panel): Sql {
  const { patients, organizations, careTeams, member } = panel
  const parts = [sql`SELECT value AS id FROM json_each(${JSON.stringify([...patients])})`]
  if (organizations.length > 0) parts.push(selectManagedPatients(names, organizations))
  if (careTeams.length > 0)
    parts.push(
      selectTeamPatients(names, sql`t.id IN (SELECT value FROM json_each(${JSON.stringify(careTeams)}))`),
    )
  if (member) {
    const nid = names.parameterId('CareTeam', 'participant')
    parts.push(
      selectTeamPatients(
        names,
        sql`EXISTS (SELECT 1 FROM reference m WHERE m.rid = t.rid AND m.nid = ${nid} AND m.id = ${member.id} AND m.type = ${member.type})`,
      ),
    )
  }
  return join(parts, ' UNION ALL ')
}

function selectManagedPatients(names: Names, organizations: readonly string[]): Sql {
  const nid = names.parameterId('Patient', 'organization')
  return sql`SELECT p.id AS id FROM reference e CROSS JOIN resource p ON p.rid = e.rid AND p.deleted = 0
    WHERE e.nid = ${nid} AND e.id IN (SELECT value FROM json_each(${JSON.stringify(organizations)})) AND e.type = 'Organization'`
}

/** Only active care teams give access: not proposed, suspended, ended or mistaken ones. */
function selectTeamPatients(names: Names, condition: Sql): Sql {
  const [patient, status] = [
    names.parameterId('CareTeam', 'patient'),
    names.parameterId('CareTeam', 'status'),
  ]
  return sql`SELECT e.id AS id FROM resource t CROSS JOIN reference e ON e.rid = t.rid AND e.nid = ${patient} AND e.type = 'Patient'
    WHERE t.tid = ${names.typeId('CareTeam')} AND t.deleted = 0 AND ${condition}
    AND EXISTS (SELECT 1 FROM token s WHERE s.rid = t.rid AND s.nid = ${status} AND s.code = 'active')`
}
