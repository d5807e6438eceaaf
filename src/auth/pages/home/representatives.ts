import { sql } from 'kysely'
import { isFailure } from '../../../core/index.ts'
import { type Html, html } from '../../../web/ui/index.ts'
import { createNameLookup, listResources, type Unavailable } from '../../base/fhir-reader.ts'
import { LIMITS } from '../../base/limits.ts'
import type { AuthUser } from '../../base/user.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { findNamedPatient } from '../../users/own-records.ts'
import { readRelationship } from '../../users/relation.ts'
import type { WhoseRecord } from '../parts/whose.ts'

const PATIENT = 'the patient'

/** Somebody else with an account that opens a record. */
interface Representative {
  readonly name: string
  /** `mother`, as recorded, or `the patient`. */
  readonly role: string | undefined
}

/**
 * Finds who else may act for a patient: the accounts of the patient and of the RelatedPersons who name the patient now. A
 * relative without an account cannot act here.
 */
export async function findRepresentatives(
  context: AuthContext,
  user: AuthUser,
  patient: string,
): Promise<readonly Representative[] | Unavailable> {
  const read = await createNameLookup(context, 'RelatedPerson', 'representatives')
  const response = await read(`RelatedPerson?patient=${patient}&_count=${LIMITS.homeRepresentatives}`)
  if (response.kind === 'unavailable') return response
  const found = response.kind === 'found' ? listResources(response.resource, 'RelatedPerson') : []
  const roles = new Map(
    found
      .filter(person => findNamedPatient(person, context) === patient)
      .map(person => [person.id ?? '', readRelationship(person)]),
  )
  const accounts = await findAccounts(context, patient, [...roles.keys()])
  return accounts
    .filter(({ id }) => id !== user.id)
    .map(({ display_name, related }) => ({
      name: display_name,
      role: related === null ? PATIENT : roles.get(related),
    }))
}

/** The accounts of a patient and of related persons, each once, by name. `related` is null for the patient. */
async function findAccounts(
  { store: { db }, rules }: AuthContext,
  patient: string,
  related: readonly string[],
) {
  const usable = db
    .selectFrom('clinician')
    .where('disabled', '=', false)
    .$if(!rules.onLoopback, query => query.where('for_loopback', '=', false))
    .select(['clinician.id', 'display_name'])
    .limit(LIMITS.homeRepresentatives)
  const own = await usable
    .select(sql<string | null>`null`.as('related'))
    .where('fhir_user_id', '=', `Patient/${patient}`)
    .execute()
  const acting = usable
    .innerJoin('account_related_person', 'account_related_person.clinician_id', 'clinician.id')
    .select('related_person_id as related')
    .where('related_person_id', 'in', related)
  const others = related.length === 0 ? [] : await acting.execute()
  const byId = new Map([...others, ...own].map(account => [account.id, account]))
  return [...byId.values()].toSorted((a, b) => a.display_name.localeCompare(b.display_name))
}

export function renderRepresentatives(
  people: readonly Representative[] | Unavailable,
  { isOwn, possessive }: WhoseRecord,
): Html {
  const whom = isOwn ? 'you' : possessive.replace(/’s$/, '')
  return html`<h3 class="home__part field__label">Who else may act for ${whom === 'the' ? 'this person' : whom}</h3>
${
  isFailure(people)
    ? html`<p class="home__part muted">This cannot be read now. Try again later.</p>`
    : people.length === 0
      ? html`<p class="home__part muted">Nobody else has an account that opens this record.</p>`
      : html`<div class="home__part"><ul class="bullets">${people.map(({ name, role }) => html`<li><b>${name}</b>${role !== undefined && describeRole(role, isOwn)}</li>`)}</ul></div>`
}`
}

function describeRole(role: string, isOwn: boolean): string {
  if (role !== PATIENT) return `, ${role}`
  return isOwn ? ', with another account for you' : ' (has an account)'
}
