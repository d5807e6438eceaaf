import type { Day, Today } from './calendar.ts'
import { type ConditionKey, conditions, getConditionEntry, isConditionKey } from './catalogue/conditions.ts'
import type { Numbering, Problem } from './chart.ts'
import { ageOn, type Person } from './people.ts'
import type { Random } from './random.ts'

/** Conditions that nobody has together. */
const exclusive: readonly (readonly ConditionKey[])[] = [
  ['type1Diabetes', 'type2Diabetes', 'prediabetes'],
  ['asthma', 'copd'],
]

/** More than this on one chart is not believable as a draw. */
const most = 7

/** The person's problems, oldest first. */
export function problemsOf(person: Person, today: Today, random: Random, numbering: Numbering): Problem[] {
  const end = person.died ?? today.day
  const found =
    person.story?.map(([key, ago]) => [key, today.day - Math.round(ago)] as const) ??
    drawn(person, end, random)
  return [...found]
    .sort((a, b) => a[1] - b[1])
    .map(([key, day]) => problemOf(key, Math.max(day, person.born), person, end, random, numbering))
}

function problemOf(
  key: ConditionKey,
  found: Day,
  person: Person,
  end: Day,
  random: Random,
  numbering: Numbering,
): Problem {
  const entry = getConditionEntry(key)
  const before = entry.lasts === undefined ? random.int(0, 150) : random.int(0, 3)
  const began = Math.max(person.born, found - (key === 'pregnancy' ? random.int(35, 60) : before))
  const over = entry.lasts === undefined ? undefined : began + random.int(entry.lasts[0], entry.lasts[1])
  const problem = { id: numbering('condition'), key, entry, began, found }
  return over === undefined || over > end ? problem : { ...problem, over }
}

function drawn(person: Person, end: Day, random: Random): (readonly [ConditionKey, Day])[] {
  const found = new Map<ConditionKey, Day>()
  const add = (key: ConditionKey, from: Day) => {
    const day = onsetDay(key, person, Math.max(from, person.born), end, random)
    if (day !== undefined && !found.has(key) && !excluded(key, found)) found.set(key, day)
  }
  for (const key of random.shuffle(Object.keys(conditions).filter(isConditionKey))) {
    if (found.size >= most) break
    if (fits(key, person) && random.chance(getConditionEntry(key).share)) add(key, person.born)
  }
  for (const [key, day] of [...found]) {
    for (const [other, probability] of getConditionEntry(key).brings ?? []) {
      if (found.size < most && isConditionKey(other) && random.chance(probability)) add(other, day)
    }
  }
  return [...found]
}

function fits(key: ConditionKey, person: Person): boolean {
  const { sex } = getConditionEntry(key)
  return sex === undefined || sex === person.gender
}

function excluded(key: ConditionKey, found: ReadonlyMap<ConditionKey, Day>): boolean {
  return exclusive.some(
    group => group.includes(key) && group.some(other => other !== key && found.has(other)),
  )
}

/** A day in the years of age in which the condition begins; short illnesses of long ago are not on the chart. */
function onsetDay(key: ConditionKey, person: Person, from: Day, end: Day, random: Random): Day | undefined {
  const { onset, lasts } = getConditionEntry(key)
  const first = Math.max(
    person.born + Math.round(onset[0] * 365.25),
    from,
    lasts === undefined ? 0 : end - 4 * 365,
  )
  const last = Math.min(person.born + Math.round((onset[1] + 1) * 365.25), end)
  if (first >= last || (key === 'pregnancy' && ageOn(person, end) > 42)) return undefined
  return random.int(first, last - 1)
}
