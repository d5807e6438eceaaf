import { type Kysely, sql } from 'kysely'
import { shortenList } from '../../../core/index.ts'
import type { Schema } from '../../../store/index.ts'
import type { Admin } from '../base/action.ts'
import type { Attention } from '../subject/attention.ts'
import { COMPARED, listFhirUsers } from './fhir-users.ts'
import type { UserDescription } from './users.ts'

type Context = Pick<Admin, 'store' | 'rules'>

/** The resources of each account that can be used: its own, and the RelatedPersons as which it acts for patients. */
function selectHeld({ store, rules }: Context) {
  const selectAccounts = (db: Kysely<Schema>) =>
    db
      .selectFrom('clinician')
      .select(['clinician.id', 'clinician.username'])
      .where('disabled', '=', false)
      .$if(!rules.onLoopback, query => query.where('for_loopback', '=', false))
  const own = sql<string>`case when fhir_user_id like '%/%' then fhir_user_id else 'Practitioner/' || fhir_user_id end`
  const related = sql<string>`'RelatedPerson/' || related_person_id`
  const held = selectAccounts(store.db)
    .select(own.as('reference'))
    .where('fhir_user_id', '!=', '')
    .union(
      selectAccounts(store.db)
        .innerJoin('account_related_person', 'account_related_person.clinician_id', 'clinician.id')
        .select(related.as('reference')),
    )
  return store.db.selectFrom(held.as('held'))
}

/** Warns that other accounts have a FHIR user of this one: a sentence for each. It may be intended: one person, two accounts. */
export async function describeSharing(context: Context, user: UserDescription): Promise<readonly string[]> {
  const references = listFhirUsers(user)
  if (user.disabled || references.length === 0) return []
  const rows = await selectHeld(context)
    .select(['reference', 'username'])
    .where('reference', 'in', references)
    .where('id', '!=', user.id)
    .orderBy('username')
    .execute()
  return [...Map.groupBy(rows, ({ reference }) => reference)].map(
    ([reference, others]) =>
      `${reference} is also the FHIR user of ${shortenList(others.map(({ username }) => username))}. Apps and the FHIR server treat these accounts as one person: give each person a resource of their own.`,
  )
}

/** FHIR users of several accounts: apps and the FHIR server cannot tell who it was. */
export const SHARING_ATTENTION: Attention = {
  code: 'users-shared',
  path: '/clinicians',
  action: 'See users',
  async find({ admin }) {
    const shared = await selectHeld(admin)
      .select(({ fn }) => ['reference', fn.min('username').as('username')])
      .groupBy('reference')
      .having(({ fn }) => fn.countAll(), '>', 1)
      .orderBy('reference')
      .limit(COMPARED)
      .execute()
    const [first] = shared
    if (!first) return undefined
    const what = shared.length === 1 ? 'a FHIR user' : 'FHIR users'
    const references = shortenList(shared.map(({ reference }) => reference))
    return {
      text: `Several accounts have ${what} in common: ${references}.`,
      path: `/clinicians?${new URLSearchParams({ search: first.username })}`,
    }
  },
}
