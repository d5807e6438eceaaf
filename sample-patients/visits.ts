import { type Day, momentOn, type Today, weekday } from './calendar.ts'
import { type ServiceKey, services } from './catalogue/services.ts'
import type { Numbering, Problem, Visit } from './chart.ts'
import { ageOn, type Person } from './people.ts'
import type { Random } from './random.ts'

type Plan = Omit<Visit, 'id'>

/** Charts hold the latest visits only: a first screen needs years, not a lifetime. */
const most = 9

/** Everything that the person came for, oldest first. */
export function visitsOf(
  person: Person,
  problems: readonly Problem[],
  today: Today,
  random: Random,
  numbering: Numbering,
): Visit[] {
  const end = person.died ?? today.day
  const past = [...foundVisits(person, problems, end, random), ...followUps(person, problems, end, random)]
  const checks = checkUps(person, end, random)
  const seen = apart([...past, ...checks].filter(it => onRecord(it, person, end)))
  return [...latest(seen), ...lately(person, problems, today, random)].map(plan => ({
    id: numbering('encounter'),
    ...plan,
  }))
}

/** The readings of the pressure stay, so that its curve has points. */
function latest(plans: readonly Plan[]): Plan[] {
  const others = plans.filter(it => it.service !== 'bloodPressure').sort((a, b) => a.start - b.start)
  const readings = plans.filter(it => it.service === 'bloodPressure')
  return [...others.slice(-most), ...readings].sort((a, b) => a.start - b.start)
}

function onRecord(plan: Plan, person: Person, end: Day): boolean {
  return plan.start >= momentOn(person.born, 0) && (plan.end ?? plan.start) <= momentOn(end, 0)
}

/** One visit a day: the diagnosis wins over the routine. */
function apart(plans: readonly Plan[]): Plan[] {
  const byDay = new Map<number, Plan>()
  for (const plan of plans) {
    const day = Math.floor(plan.start / 86_400_000)
    if (!byDay.has(day)) byDay.set(day, plan)
  }
  return [...byDay.values()]
}

function foundVisits(person: Person, problems: readonly Problem[], end: Day, random: Random): Plan[] {
  return problems
    .filter(it => it.found > end - 4 * 365 && !isFoundNow(it, person, end))
    .map(problem =>
      visit(serviceFor(problem.entry.found, person, problem.found), problem.found, 'found', random, problem),
    )
}

/** What is found in the visit that is still going on has no other. */
function isFoundNow(problem: Problem, person: Person, end: Day): boolean {
  return problem.entry.found === person.inProgress && problem.found > end - 10
}

function followUps(person: Person, problems: readonly Problem[], end: Day, random: Random): Plan[] {
  return problems.flatMap(problem => {
    const { followed, every } = problem.entry
    // The yearly check-up looks at everything; it is not made twice.
    if (followed === undefined || every === undefined || followed === 'annual') return []
    const from = Math.max(problem.found, end - (every < 60 ? 365 : 3 * 365))
    const to = Math.min(problem.over ?? end, end)
    const plans: Plan[] = []
    for (
      let day = from + Math.round(every * random.between(0.5, 1.1));
      day < to - 3;
      day += nextIn(every, random)
    ) {
      plans.push(visit(serviceFor(followed, person, day), day, 'follow-up', random, problem))
    }
    return plans
  })
}

function nextIn(every: number, random: Random): number {
  return Math.max(7, Math.round(every * random.between(0.85, 1.2)))
}

const wellChildMonths = [0.5, 1, 2, 4, 6, 9, 12, 15, 18, 24, 30, 36]

function checkUps(person: Person, end: Day, random: Random): Plan[] {
  const age = ageOn(person, end)
  if (age < 4) {
    return wellChildMonths.map(months =>
      visit('wellChild', person.born + Math.round(months * 30.44), 'check-up', random),
    )
  }
  const years = age < 40 ? 2 : 3
  const service = age < 18 ? 'wellChild' : 'annual'
  const offset = random.int(20, 330)
  return Array.from({ length: years }, (_, back) =>
    visit(service, end - offset - back * 365 + random.int(-20, 20), 'check-up', random),
  )
}

/** Children are seen by those who see children. */
function serviceFor(service: ServiceKey, person: Person, day: Day): ServiceKey {
  const adult =
    service === 'family' || service === 'annual' || service === 'cardiology' || service === 'video'
  return adult && ageOn(person, day) < 16 ? 'children' : service
}

function visit(
  service: ServiceKey,
  day: Day,
  purpose: Visit['purpose'],
  random: Random,
  problem?: Problem,
): Plan {
  const { class: kind, minutes } = services[service]
  const acute = kind === 'EMER' || kind === 'IMP'
  const start = acute
    ? momentOn(day, random.int(0, 23) * 60 + random.int(0, 59))
    : momentOn(weekday(day), clinicTime(random))
  const end = start + random.int(minutes[0], minutes[1]) * 60_000
  return { service, start, end, status: 'finished', purpose, ...(problem && { problem }) }
}

/** Clinics run from 08:00 to 16:55, in steps of five minutes. */
function clinicTime(random: Random): number {
  return 480 + random.int(0, 107) * 5
}

/** Visits of today, planned visits, and the last days of patients who died. */
function lately(person: Person, problems: readonly Problem[], today: Today, random: Random): Plan[] {
  if (person.died !== undefined) return [lastVisit(person.died, problems, random)]
  const plans: Plan[] = []
  if (person.inProgress !== undefined)
    plans.push(openVisit(person, person.inProgress, problems, today, random))
  if (random.chance(0.12)) plans.push(planned(person, problems, today, random))
  return plans
}

function lastVisit(died: Day, problems: readonly Problem[], random: Random): Plan {
  const problem = problems.findLast(it => it.over === undefined && it.entry.followed !== undefined)
  const end = momentOn(died, random.int(60, 1300))
  const start = end - random.int(2, 9) * 86_400_000
  return { service: 'ward', start, end, status: 'finished', purpose: 'last', ...(problem && { problem }) }
}

function openVisit(
  person: Person,
  wanted: ServiceKey,
  problems: readonly Problem[],
  today: Today,
  random: Random,
): Plan {
  const service = serviceFor(wanted, person, today.day)
  const problem =
    problems.findLast(it => it.entry.followed === service || it.entry.found === service) ?? problems.at(-1)
  return {
    service,
    start: openSince(person, service, today, random),
    status: 'in-progress',
    purpose: problem !== undefined && problem.entry.found === service ? 'found' : 'follow-up',
    ...(problem && { problem }),
  }
}

function openSince(person: Person, service: ServiceKey, today: Today, random: Random): number {
  const recently = today.hour - random.int(2, 14) * 300_000
  if (service === 'newborn') return Math.min(recently, momentOn(person.born, 300 + random.int(0, 240)))
  if (services[service].class === 'IMP') return momentOn(today.day - random.int(1, 4), random.int(480, 1300))
  return recently
}

function planned(person: Person, problems: readonly Problem[], today: Today, random: Random): Plan {
  const problem = problems.findLast(it => it.entry.followed !== undefined && it.over === undefined)
  const service = serviceFor(problem?.entry.followed ?? 'annual', person, today.day)
  const start = momentOn(weekday(today.day + random.int(5, 40)), clinicTime(random))
  const status = random.chance(0.2) ? 'cancelled' : 'planned'
  return { service, start, status, purpose: 'follow-up', ...(problem && { problem }) }
}
