import type { SearchClause } from '../../../../fhir/index.ts'
import { OTHER_WORDS } from '../../repository/names.ts'
import type { Sorted } from './walk.ts'

/** Two searches that together find what a search by a name finds. Both may find a resource. */
export interface NameSearches<Search> {
  /** By the family name by which a resource is sorted: an index has these resources in the order of the page. */
  readonly byFamily: Search
  /** By any other word of a name. */
  readonly byOtherWord: Search
  /** By the other conditions alone. */
  readonly withoutName: Search
}

/**
 * Divides a search by one word of a `name` that is sorted by `family`: its page then needs only the first of the resources
 * with this name. Undefined for other searches.
 */
export function divideByName<Search extends Sorted>(search: Search): NameSearches<Search> | undefined {
  const [key] = search.sort
  const clause = search.clauses.find(isOfOneWord)
  if (key?.parameter !== 'family' || key.descending || !clause) return undefined
  const others = search.clauses.filter(it => it !== clause)
  const findBy = (parameter: string) => ({ ...search, clauses: [{ ...clause, parameter }, ...others] })
  return {
    byFamily: { ...findBy('family'), isOfSortValue: true },
    byOtherWord: findBy(OTHER_WORDS),
    withoutName: { ...search, clauses: others },
  }
}

function isOfOneWord(clause: SearchClause): boolean {
  if (clause.kind !== 'string' || clause.parameter !== 'name' || clause.match !== 'starts') return false
  return clause.values.length === 1 && !clause.values[0]?.includes(' ')
}
