import { findAlike, findConfusable, type Person, readPerson } from '../../web/person/index.ts'
import { type FhirReader, listResources } from '../base/fhir-reader.ts'
import { LIMITS } from '../base/limits.ts'
import { encodeName } from './queries.ts'

/** The patients of a page whose names are similar to those of other patients, who need not be on the page. */
export interface SimilarNames {
  readonly ids: ReadonlySet<string>
  /** Whether they were compared with all patients. Otherwise the page says so. */
  readonly isComplete: boolean
}

/** Compares the names of a page with those of all patients who have their family names, in one search. */
export async function findSimilar(read: FhirReader, people: readonly Person[]): Promise<SimilarNames> {
  const families = new Set(people.flatMap(({ name }) => name.family?.toLowerCase() ?? []))
  if (families.size === 0) return compareNames(people)
  const values = [...families].map(family => encodeName(beginning(family))).join()
  const { namesCompared } = LIMITS
  const compare = await read.asService('similar-names')
  const response = await compare(`Patient?family=${values}&_total=none&_count=${namesCompared}`)
  const found = response.kind === 'found' ? listResources(response.resource, 'Patient').map(readPerson) : []
  const isComplete = response.kind === 'found' && response.next === undefined && found.length < namesCompared
  return { ...compareNames([...people, ...found]), isComplete }
}

/** Compares the names of all patients with each other. */
export function compareNames(all: readonly Person[]): SimilarNames {
  const distinct = new Map(all.map(person => [person.id, person])).values()
  return {
    ids: new Set(
      findConfusable([...distinct])
        .values()
        .map(({ id }) => id),
    ),
    isComplete: true,
  }
}

/** A server finds names by their beginning. */
function beginning(family: string): string {
  return family.slice(0, LIMITS.searchCharacters)
}

const NAMESAKES_READ = 50

/** Finds the patients whose names are similar: the same family name, and a similar given name. */
export async function findNamesakes(read: FhirReader, person: Person): Promise<readonly Person[]> {
  const { family, given = '' } = person.name
  if (family === undefined) return []
  const query = `family=${encodeName(beginning(family))}`
  const first = await findNamed(read, query)
  const others =
    first.length < NAMESAKES_READ
      ? []
      : await Promise.all(
          listBeginnings(given).map(it => findNamed(read, `${query}&given=${encodeName(it)}`)),
        )
  const found = new Map([...first, ...others.flat()].map(one => [one.id, one]))
  return findAlike(person, [...found.values()])
}

async function findNamed(read: FhirReader, query: string): Promise<readonly Person[]> {
  const response = await read(`Patient?${query}&_count=${NAMESAKES_READ}`)
  return response.kind === 'found' ? listResources(response.resource, 'Patient').map(readPerson) : []
}

/** The first given name and its first letters, by which a server finds the most similar names of a large family. */
function listBeginnings(given: string): readonly string[] {
  const [first = ''] = given.split(' ')
  return [...new Set([first, [...first].slice(0, 2).join('')])].filter(it => it !== '')
}

/** Whether another patient has a name similar to this one's. */
export async function hasNamesake(read: FhirReader, person: Person): Promise<boolean> {
  return (await findNamesakes(await read.asService('similar-names'), person)).length > 0
}
