import type { Panel, PanelMembership } from '../../../smart/index.ts'
import type { Names } from '../repository/names.ts'
import type { Repository } from '../repository/repository.ts'
import { join, type Sql, sql } from './sql.ts'

/** The ids of the patients on a panel, as a subquery with one column `id`: as the data are now. */
export function selectPanelPatients(names: Names, panel: Panel): Sql {
  const { patients, organizations, careTeams, member } = panel
  const parts = [sql`SELECT value AS id FROM json_each(${JSON.stringify([...patients])})`]
  if (organizations.length > 0) parts.push(managed(names, organizations))
  if (careTeams.length > 0)
    parts.push(caredFor(names, sql`t.id IN (SELECT value FROM json_each(${JSON.stringify(careTeams)}))`))
  if (member) {
    const nid = names.parameterId('CareTeam', 'participant')
    parts.push(
      caredFor(
        names,
        sql`EXISTS (SELECT 1 FROM reference m WHERE m.rid = t.rid AND m.nid = ${nid} AND m.id = ${member.id} AND m.type = ${member.type})`,
      ),
    )
  }
  return join(parts, ' UNION ALL ')
}

/** Tells of one patient at a time what `panelPatients` tells of all. */
export function createMembership({ database, names }: Repository): PanelMembership {
  return {
    includes(panel, patient) {
      const { text, values } =
        sql`SELECT 1 FROM (${selectPanelPatients(names, panel)}) WHERE id = ${patient} LIMIT 1`
      return database.rows(text, values).length > 0
    },
  }
}

function managed(names: Names, organizations: readonly string[]): Sql {
  const nid = names.parameterId('Patient', 'organization')
  return sql`SELECT p.id AS id FROM reference e CROSS JOIN resource p ON p.rid = e.rid AND p.deleted = 0
    WHERE e.nid = ${nid} AND e.id IN (SELECT value FROM json_each(${JSON.stringify(organizations)})) AND e.type = 'Organization'`
}

/** Of care teams that are at work: a proposed, suspended, ended or mistaken one gives no right. */
function caredFor(names: Names, which: Sql): Sql {
  const [patient, status] = [
    names.parameterId('CareTeam', 'patient'),
    names.parameterId('CareTeam', 'status'),
  ]
  return sql`SELECT e.id AS id FROM resource t CROSS JOIN reference e ON e.rid = t.rid AND e.nid = ${patient} AND e.type = 'Patient'
    WHERE t.tid = ${names.typeId('CareTeam')} AND t.deleted = 0 AND ${which}
    AND EXISTS (SELECT 1 FROM token s WHERE s.rid = t.rid AND s.nid = ${status} AND s.code = 'active')`
}
