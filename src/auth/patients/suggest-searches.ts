import { computeDistance } from '../../core/index.ts'
import { isNearName, type Person, readPerson } from '../../web/person/index.ts'
import { createNameReader, type FhirReader, listResources, type ReaderContext } from '../base/fhir-reader.ts'
import { LIMITS } from '../base/limits.ts'
import type { AuthUser } from '../base/user.ts'
import { listPeople, type PatientList } from './patients.ts'
import { buildNameQuery, encodeName, splitWords } from './queries.ts'

/** Suggests other searches for one that finds nobody, if the FHIR server answers soon. */
export async function findSuggestions(
  context: ReaderContext,
  user: AuthUser,
  {
    list,
    search,
    address,
  }: { readonly list: PatientList; readonly search: string | undefined; readonly address: string },
): Promise<readonly string[]> {
  if (search === undefined || listPeople(list).length > 0) return []
  return suggestSearches(await createNameReader(context, user, { purpose: 'spelling', address }), search)
}

/** A word of letters, long enough to be recognized with a mistake. */
const NAME = /^[\p{L}\p{M}'’-]{4,40}$/u

/** A family name and a given name. */
const MAX_WORDS = 2

const MAX_SUGGESTIONS = 3

/** The search with one of its names as it is in the record of a patient that the user may see. */
export async function suggestSearches(read: FhirReader, search: string): Promise<readonly string[]> {
  const words = splitWords(search)
  if (words.length > MAX_WORDS || !words.every(word => NAME.test(word))) return []
  const searches = await Promise.all(
    words.map(async (word, at) => {
      const names = await findNearNames(read, word, words.toSpliced(at, 1))
      return names.map(name => words.toSpliced(at, 1, name).join(' '))
    }),
  )
  return [...new Set(searches.flat())].slice(0, MAX_SUGGESTIONS)
}

/**
 * The names that differ from a mistyped one in one or two letters, the nearest first. A server finds names by their
 * beginning. So the first letters are searched with each mistake that one can make in them. Mistakes behind them
 * are compared among some names with the same beginning. All of this reads the index, and a limited number of records.
 */
async function findNearNames(
  read: FhirReader,
  word: string,
  others: readonly string[],
): Promise<readonly string[]> {
  const first = listVariants(word)
  const rest = [beginning(word)]
  for (const beginnings of [first, rest]) {
    const query = [`name=${beginnings.map(encodeName).join()}`, buildNameQuery(others)].filter(Boolean)
    const response = await read(`Patient?${query.join('&')}&_total=none&_count=${LIMITS.namesSuggested}`)
    const people =
      response.kind === 'found' ? listResources(response.resource, 'Patient').map(readPerson) : []
    const names = new Set(people.flatMap(listNames).filter(name => isNearName(name, word)))
    if (names.size > 0) return [...names].toSorted((a, b) => compare(a, b, word))
  }
  return []
}

function compare(a: string, b: string, word: string): number {
  const measure = (name: string) => computeDistance(name.toLowerCase(), word.toLowerCase())
  return measure(a) - measure(b)
}

function listNames({ name }: Person): readonly string[] {
  const { family = '', given = '', text = '' } = name
  return [family, ...splitWords(given), ...splitWords(text)].filter(it => it !== '')
}

const FIRST_LETTERS = 4

function beginning(word: string): string {
  return word.slice(0, FIRST_LETTERS)
}

const ALPHABET = [...'abcdefghijklmnopqrstuvwxyz']

/** A word whose first letters have one letter less, another one or one more, or two in the other order. */
function listVariants(word: string): readonly string[] {
  const variants = Array.from({ length: FIRST_LETTERS }, (_, at) => {
    const replace = (count: number, by: string) => word.slice(0, at) + by + word.slice(at + count)
    const swapped = `${word.charAt(at + 1)}${word.charAt(at)}`
    return [replace(1, ''), replace(2, swapped), ...ALPHABET.flatMap(it => [replace(1, it), replace(0, it)])]
  })
  return [...new Set(variants.flat())]
}
