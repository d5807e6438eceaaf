import type { KeptRecord } from '../../audit/index.ts'
import type { Store } from '../../store/index.ts'
import type { Names } from './describe.ts'

/** Finds the names of the clinicians and apps in the records, and of further apps. Patients are shown by their id only. */
export async function findNames(
  { db }: Store,
  records: readonly KeptRecord[],
  clients: readonly string[] = [],
): Promise<Names> {
  const [clinicians, apps] = await Promise.all([
    findNamesById(
      records.map(record => record.subject),
      ids =>
        db.selectFrom('clinician').select(['id', 'display_name as name']).where('id', 'in', ids).execute(),
    ),
    findNamesById([...records.map(record => record.client_id), ...clients], ids =>
      db.selectFrom('client').select(['client_id as id', 'name']).where('client_id', 'in', ids).execute(),
    ),
  ])
  return { clinician: id => clinicians.get(id), app: id => apps.get(id) }
}

async function findNamesById(
  ids: readonly (string | null)[],
  find: (ids: readonly string[]) => Promise<readonly { readonly id: string; readonly name: string }[]>,
): Promise<ReadonlyMap<string, string>> {
  const named = [...new Set(ids)].filter(id => id !== null)
  const found = named.length === 0 ? [] : await find(named)
  return new Map(found.map(({ id, name }) => [id, name]))
}
