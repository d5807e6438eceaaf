import { parseSearch } from '../../../fhir/index.ts'
import {
  type AccessFilter,
  type ConstraintGroup,
  groupConstraints,
  type Panel,
} from '../../../smart/index.ts'
import { buildCondition } from './conditions.ts'
import { selectPanelPatients } from './panel-patients.ts'
import type { QueryContext } from './query-context.ts'
import { all, any, list, name, type Sql, sql } from './sql.ts'

/** Whether the resource in the row is within what the caller reaches. */
export function buildAccessCondition(
  scene: QueryContext,
  type: string,
  filter: Exclude<AccessFilter, 'everything'>,
  row: string,
): Sql {
  return any(
    groupConstraints(filter).map(group =>
      all([
        buildSubjectCondition(scene, type, group.subject, row),
        buildQueriesCondition(scene, type, group, row),
      ]),
    ),
  )
}

/** Where every limit is a patient's compartment, its members: few, and a good begin of a search. */
export function selectCompartment(scene: QueryContext, type: string, filter: AccessFilter): Sql | undefined {
  if (filter === 'everything' || !filter.every(limit => limit.patient !== undefined)) return undefined
  const patients = [...new Set(filter.flatMap(limit => limit.patient ?? []))]
  return sql`SELECT c.rid FROM compartment c WHERE c.patient IN (${list(patients)}) AND c.tid = ${scene.names.typeId(type)}`
}

/** The same of the patients of a panel: the user's own rights. */
function panelCondition(scene: QueryContext, type: string, panel: Panel, row: string): Sql {
  const [tid, at] = [scene.names.typeId(type), name(row)]
  return sql`EXISTS (SELECT 1 FROM (${selectPanelPatients(scene.names, panel)}) q CROSS JOIN compartment c
    ON c.patient = q.id AND c.tid = ${tid} AND c.rid = ${at}.rid AND c.version = ${at}.version)`
}

/** Whether the version in the row is in a patient's compartment. Also of rows of the table `version`. */
function compartmentCondition(scene: QueryContext, type: string, patient: string, row: string): Sql {
  const [tid, at] = [scene.names.typeId(type), name(row)]
  return sql`EXISTS (SELECT 1 FROM compartment c WHERE c.patient = ${patient} AND c.tid = ${tid} AND c.rid = ${at}.rid AND c.version = ${at}.version)`
}

/** Whether the version in the row contains nothing about a patient outside the limit (`isWithin` in consent). */
function containsNoOther(
  scene: QueryContext,
  { patient, panel }: ConstraintGroup['subject'],
  row: string,
): Sql | undefined {
  const at = name(row)
  const others = [
    ...(patient === undefined ? [] : [sql`h.patient <> ${patient}`]),
    ...(panel ? [sql`h.patient NOT IN (${selectPanelPatients(scene.names, panel)})`] : []),
  ]
  if (others.length === 0) return undefined
  return sql`NOT EXISTS (SELECT 1 FROM contained_patient h
    WHERE h.rid = ${at}.rid AND h.version = ${at}.version AND ${any(others)})`
}

/** Whether the version in the row meets a limit but for its query. Also of rows of the table `version`. */
export function buildSubjectCondition(
  scene: QueryContext,
  type: string,
  limit: ConstraintGroup['subject'],
  row: string,
  resourceRow = row,
): Sql {
  // Only of writes, which are judged by their content and not by a query.
  if (limit.exclusive) return name('0')
  const parts: Sql[] = []
  if (limit.patient !== undefined) parts.push(compartmentCondition(scene, type, limit.patient, row))
  if (limit.panel) parts.push(panelCondition(scene, type, limit.panel, row))
  const sealed = containsNoOther(scene, limit, row)
  if (sealed) parts.push(sealed)
  if (limit.id !== undefined) parts.push(sql`${name(resourceRow)}.id = ${limit.id}`)
  return all(parts)
}

/** Whether the search values of the resource in the row, which lives, meet one of the queries. */
export function buildQueriesCondition(
  scene: QueryContext,
  type: string,
  { queries }: ConstraintGroup,
  row: string,
): Sql {
  return any(
    queries.map(query =>
      all(query.map(([parameter, value]) => granularCondition(scene, type, parameter, value, row))),
    ),
  )
}

function granularCondition(
  scene: QueryContext,
  type: string,
  parameter: string,
  value: string,
  row: string,
): Sql {
  const clause = parseSearch(type, parameter, value, scene.baseUrl)
  // A parameter that cannot be evaluated on the resource alone grants nothing.
  if (clause.kind === 'error' || clause.kind === 'chain' || clause.kind === 'has') return name('0')
  return buildCondition(scene, type, clause, row)
}
