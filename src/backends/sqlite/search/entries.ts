import type { SentContent } from '../../../audit/index.ts'
import type { SearchEntry } from '../../../fhir-api/index.ts'
import type { Database } from '../repository/database.ts'
import { COLLECTIONS, findContained, findLastWrite, findVersionPatients } from '../stored-version.ts'
import type { Hit } from './planner/run-query.ts'

/** The resources of a page, for the audit trail: the index finds the patients of nearly all of them at once. */
export function toContents(database: Database, hits: readonly Hit[]): readonly SentContent[] {
  const isSingle = ({ type }: Hit) => COLLECTIONS.has(type) || type === 'Binary'
  const indexed = hits.filter(hit => !isSingle(hit))
  const page = { type: 'Bundle', id: '', text: undefined, parse: () => undefined }
  return [
    { ...page, findPatients: () => findPagePatients(database, indexed) },
    ...hits.filter(isSingle).map(hit => toEntry(database, hit)),
  ]
}

function findPagePatients(database: Database, hits: readonly Hit[]): readonly string[] {
  const patients = new Set(hits.flatMap(hit => findContained(database, hit)))
  for (const [version, some] of Map.groupBy(hits, hit => hit.version)) {
    const rows = database.rows(
      `SELECT DISTINCT c.patient FROM json_each(?) sent
       CROSS JOIN compartment c ON c.rid = sent.value AND c.version = ?`,
      [JSON.stringify(some.map(({ rid }) => rid)), version],
    )
    for (const [patient] of rows) patients.add(String(patient))
  }
  return [...patients]
}

/** A resource that a search found as the FHIR API sees it. */
export function toEntry(database: Database, hit: Hit): SearchEntry {
  return {
    type: hit.type,
    id: hit.id,
    text: hit.content,
    get order() {
      return findLastWrite(database, hit.rid)
    },
    parse: () => JSON.parse(hit.content),
    findPatients: () => findVersionPatients(database, hit),
  }
}
