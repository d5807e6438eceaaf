/** The ids of a patient and of their resources, without those of the hospital. */
const IDS =
  /("id":"|"reference":"(?!Practitioner(?:Role)?\/|Location\/|Organization\/|Medication\/)\w+\/|"url":"Binary\/|"value":")([a-z]+)-\d+/g
/** A group of several patients is no part of a history. */
const GROUPS = /^\{"resourceType":"Group".*\n/gm

/**
 * Makes the lines of patients beyond the recorded ones, by number: the history of a recorded patient with other ids, another
 * MRN, and the names of others. Newborns have no given names yet.
 */
export function createCopier(recorded: readonly string[]): (number: number) => string {
  const people = recorded.map(readPerson)
  const families = [...new Set(people.map(it => it.family))].filter(family => !family.includes('-'))
  const givenNames = Map.groupBy(
    people.filter(it => it.isNamed),
    it => it.gender,
  )
  return number => {
    const round = Math.floor((number - 1) / recorded.length)
    const person = people[(number - 1) % recorded.length]
    if (person === undefined) return ''
    const namesake = pickAfter(givenNames.get(person.gender) ?? [], person, 5 * round)
    const given = person.isNamed ? namesake.given : person.given
    return person.lines
      .replaceAll(`"family":"${person.family}"`, `"family":"${makeFamily(families, person.family, round)}"`)
      .replace(person.given, given)
      .replace(/SYN-\d+/, `SYN-${String(4_090 + number * 7).padStart(6, '0')}`)
      .replace(IDS, `$1$2-${number}`)
  }
}

interface Person {
  readonly lines: string
  readonly family: string
  /** As in the lines. */
  readonly given: string
  readonly gender: string
  readonly isNamed: boolean
}

function readPerson(lines: string): Person {
  const { name, gender, _birthDate } = JSON.parse(lines.slice(0, lines.indexOf('\n')))
  const [{ family, given }] = name
  return {
    lines: lines.replace(GROUPS, ''),
    family,
    given: `"given":${JSON.stringify(given)}`,
    gender,
    isNamed: _birthDate === undefined,
  }
}

/** Another single name in each round, and two together when there are no more. */
function makeFamily(families: readonly string[], family: string, round: number): string {
  const first = pickAfter(families, family, round)
  const repetition = Math.floor(round / families.length)
  return repetition === 0 ? first : `${first}-${pickAfter(families, first, repetition)}`
}

function pickAfter<Item>(items: readonly Item[], item: Item, steps: number): Item {
  return items[(items.indexOf(item) + steps) % items.length] ?? item
}
