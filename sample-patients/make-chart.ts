import type { Day, Today } from './calendar.ts'
import { type AllergenEntry, allergens } from './catalogue/allergens.ts'
import type { AllergenKey, Chart, Constitution, Numbering, Problem } from './chart.ts'
import { hasOn } from './chart.ts'
import { ageOn, type Person } from './people.ts'
import { prescriptionsOf } from './prescriptions.ts'
import { problemsOf } from './problems.ts'
import type { Random } from './random.ts'
import { visitsOf } from './visits.ts'

/** Someone's history as a whole, before anything of it is written down. */
export function makeChart(person: Person, today: Today, random: Random, numbering: Numbering): Chart {
  const end = person.died ?? today.day
  const problems = problemsOf(person, today, random, numbering)
  const allergies = allergiesOf(person, end, random)
  return {
    person,
    today,
    end,
    random,
    constitution: constitutionOf(person, problems, end, random),
    problems,
    allergies,
    visits: visitsOf(person, problems, today, random, numbering),
    prescriptions: prescriptionsOf(person, end, problems, allergies, random, numbering),
  }
}

/** Babies have shown none yet. */
function allergiesOf(person: Person, end: Day, random: Random): AllergenKey[] {
  if (ageOn(person, end) < 1) return []
  return Object.keys(allergens)
    .filter((key): key is AllergenKey => Object.hasOwn(allergens, key))
    .filter(key => random.chance(shareOf(allergens[key])))
    .slice(0, 3)
}

function shareOf(entry: AllergenEntry): number {
  return entry.share
}

function constitutionOf(
  person: Person,
  problems: readonly Problem[],
  end: Day,
  random: Random,
): Constitution {
  const lungs = hasOn(problems, 'copd', end) !== undefined
  return {
    height: random.around(0, 1),
    weight: random.around(0, 1),
    pressure: random.around(0, 4),
    kidney: random.around(0, 1),
    lipids: random.around(0, 1),
    grip: random.between(0.55, 0.92),
    lapse: person.number === 1 || random.chance(0.5) ? random.between(12, 24) : 0,
    smoking: lungs
      ? random.pick(['former', 'daily'])
      : random.pick(['never', 'never', 'never', 'former', 'daily']),
  }
}
