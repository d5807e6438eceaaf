import { bornOn, type Day, type Today, yearsBetween } from './calendar.ts'
import { type Age, type CastEntry, cast } from './catalogue/cast/index.ts'
import { families, givenNames } from './catalogue/names.ts'
import { createRandom, type Random } from './random.ts'

/** A patient with a generated history. The day of birth is always known here; how much of it is on record is `known`. */
export interface Person extends Omit<CastEntry, 'age' | 'diedDaysAgo'> {
  /** Counts from 1; names the records (`patient-1`). */
  readonly number: number
  readonly born: Day
  readonly died?: Day
}

/** The first people are the cast, the others are drawn. A person depends on seed and number, not on how many there are. */
export function* people(count: number, seed: string, today: Today): Generator<Person> {
  const names = createRandom(`${seed}/families`).shuffle(families)
  for (let number = 1; number <= count; number++) {
    const entry =
      cast[number - 1] ?? drawn(number - cast.length, names, createRandom(`${seed}/person/${number}`))
    yield personOf(entry, number, today)
  }
}

function personOf({ age, diedDaysAgo, ...entry }: CastEntry, number: number, today: Today): Person {
  const person = { ...entry, number, born: bornAt(age, today.day) }
  return diedDaysAgo === undefined ? person : { ...person, died: today.day - diedDaysAgo }
}

function bornAt(age: Age, day: Day): Day {
  if ('days' in age) return day - age.days
  if ('months' in age) return day - Math.round(age.months * 30.44)
  return bornOn(age.birthday, age.years, day)
}

function drawn(nth: number, names: readonly string[], random: Random): CastEntry {
  const gender = random.chance(0.51) ? 'female' : random.chance(0.96) ? 'male' : 'other'
  const given = [
    random.pick(givenNames[gender]),
    ...(random.chance(0.25) ? [random.pick(givenNames[gender])] : []),
  ]
  const age = drawnAge(random)
  const dead = 'years' in age && age.years > 74 && random.chance(0.12)
  const mrn = `SYN-${String(4300 + nth * 7).padStart(6, '0')}`
  const isAdult = 'years' in age && age.years >= 18
  const prefix = random.chance(0.12) && {
    prefix: [random.pick(gender === 'female' ? ['Ms', 'Mrs', 'Dr.'] : ['Mr', 'Dr.'])],
  }
  return {
    family: familyOf(nth, names),
    given: [...new Set(given)],
    gender,
    age,
    mrn,
    ...(isAdult && prefix),
    ...(dead && { diedDaysAgo: random.int(30, 1500) }),
    ...(random.chance(0.08) && { inProgress: random.pick(['family', 'emergency', 'cardiology', 'video']) }),
  }
}

/** Single names first; when they run out, two together. */
function familyOf(nth: number, names: readonly string[]): string {
  const at = nth - 1
  const first = names[at % names.length] ?? 'Willow'
  const round = Math.floor(at / names.length)
  return round === 0 ? first : `${first}-${names[(at + round * 7) % names.length] ?? 'Willow'}`
}

const bands = [
  [0.06, 1, 23],
  [0.12, 2, 11],
  [0.1, 12, 17],
  [0.22, 18, 39],
  [0.26, 40, 64],
  [0.18, 65, 84],
  [0.06, 85, 101],
] as const

function drawnAge(random: Random): Age {
  let rest = random.next()
  for (const [share, from, to] of bands) {
    rest -= share
    if (rest < 0)
      return from === 1
        ? { months: random.int(1, 23) }
        : { years: random.int(from, to), birthday: birthday(random) }
  }
  return { years: random.int(18, 64), birthday: birthday(random) }
}

function birthday(random: Random): string {
  return `${String(random.int(1, 12)).padStart(2, '0')}-${String(random.int(1, 28)).padStart(2, '0')}`
}

export function ageOn(person: Person, day: Day): number {
  return yearsBetween(person.born, day)
}
