import type { KeptRecord } from '../../audit/index.ts'
import type { Store } from '../../store/index.ts'
import { isPatientUser } from '../clinician/clinician.ts'
import type { Names } from './describe.ts'

interface FindNamesOptions {
  /** Further apps. */
  readonly clients?: readonly string[]
  /** Whether patients and their relatives are named by their resources: `Patient/1`. */
  readonly hidesPatients?: boolean
}

/** Finds the names of the users and apps in the records. */
export async function findNames(
  { db }: Store,
  records: readonly KeptRecord[],
  { clients = [], hidesPatients = false }: FindNamesOptions = {},
): Promise<Names> {
  const [clinicians, apps] = await Promise.all([
    findNamesById(
      records.map(record => record.subject),
      async ids => {
        const users = await db
          .selectFrom('clinician')
          .select(['id', 'display_name as name', 'fhir_user_id as fhirUserId'])
          .where('id', 'in', ids)
          .execute()
        return users.map(user =>
          hidesPatients && isPatientUser(user) ? { ...user, name: user.fhirUserId } : user,
        )
      },
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
