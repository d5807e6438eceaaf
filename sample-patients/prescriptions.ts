import type { Day } from './calendar.ts'
import { cautions, type MedicineClass, medicineClasses } from './catalogue/medicine-classes.ts'
import type { MedicineKey } from './catalogue/medicines.ts'
import { type AllergenKey, hasOn, type Numbering, type Prescription, type Problem } from './chart.ts'
import type { Person } from './people.ts'
import type { Random } from './random.ts'

/** Orders older than this are not on the chart. */
const memory = 6 * 365

interface Prescriber {
  readonly person: Person
  readonly end: Day
  readonly problems: readonly Problem[]
  readonly allergies: readonly AllergenKey[]
  readonly random: Random
  readonly numbering: Numbering
  /** The classes that the person takes now. */
  readonly taken: Set<MedicineClass>
}

/** What was prescribed for the problems: changed, renewed and ended as treatment is. */
export function prescriptionsOf(
  person: Person,
  end: Day,
  problems: readonly Problem[],
  allergies: readonly AllergenKey[],
  random: Random,
  numbering: Numbering,
): Prescription[] {
  const by: Prescriber = { person, end, problems, allergies, random, numbering, taken: new Set() }
  return problems.flatMap(problem =>
    (problem.entry.treated ?? []).flatMap((choices, nth) => {
      if (nth > 0 && choices.length > 1 && !random.chance(0.7)) return []
      const suitable = choices.filter(medicine => suits(medicine, problem, by))
      return suitable.length === 0 ? [] : course(suitable, problem, by)
    }),
  )
}

function suits(medicine: MedicineKey, problem: Problem, by: Prescriber): boolean {
  const kind = medicineClasses[medicine]
  if (kind === undefined) return true
  const { classes = [], conditions = [], allergies = [] } = cautions[kind] ?? {}
  return (
    !by.taken.has(kind) &&
    !classes.some(other => by.taken.has(other)) &&
    !conditions.some(key => key !== problem.key && hasOn(by.problems, key, by.end) !== undefined) &&
    !allergies.some(allergen => by.allergies.some(known => known === allergen))
  )
}

function course(choices: readonly MedicineKey[], problem: Problem, by: Prescriber): Prescription[] {
  const [first, second] = choices
  if (first === undefined) return []
  const kind = medicineClasses[first]
  if (problem.entry.lasts !== undefined) return [short(first, problem, by)]
  if (kind !== undefined) by.taken.add(kind)
  return lasting(first, by.random.chance(0.35) ? second : undefined, problem, by)
}

/** One order for an illness that passes. */
function short(medicine: MedicineKey, problem: Problem, by: Prescriber): Prescription {
  const status =
    problem.over === undefined ? (by.person.died === undefined ? 'active' : 'stopped') : 'completed'
  return { id: by.numbering('medicationrequest'), medicine, problem, day: problem.found, status }
}

function lastStatus({ person }: Prescriber): Pick<Prescription, 'status' | 'ended'> {
  return person.died === undefined ? { status: 'active' } : { status: 'stopped', ended: 'died' }
}

/** A continuing treatment: perhaps another medicine at first, then orders that are renewed. */
function lasting(
  medicine: MedicineKey,
  other: MedicineKey | undefined,
  problem: Problem,
  by: Prescriber,
): Prescription[] {
  const orders: Prescription[] = []
  let start = problem.found + by.random.int(0, 20)
  const add = (of: MedicineKey, day: Day, status: Pick<Prescription, 'status' | 'ended'>) => {
    const follows = orders.at(-1)?.id
    const order = { id: by.numbering('medicationrequest'), medicine: of, problem, day, ...status }
    orders.push(follows === undefined ? order : { ...order, follows })
  }
  const changed = start + by.random.int(40, 300)
  if (other !== undefined && changed < by.end && start > by.end - memory) {
    add(other, start, { status: 'stopped', ended: 'changed' })
    start = changed
  }
  const latest = Math.max(Math.min(start, by.end), by.end - by.random.int(15, 340))
  if (latest - start > 200 && start > by.end - memory) add(medicine, start, { status: 'completed' })
  add(medicine, latest, lastStatus(by))
  return orders
}
