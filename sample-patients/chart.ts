import type { Day, Today } from './calendar.ts'
import type { allergens } from './catalogue/allergens.ts'
import type { ConditionEntry } from './catalogue/condition-entry.ts'
import type { ConditionKey } from './catalogue/conditions.ts'
import type { MedicineKey } from './catalogue/medicines.ts'
import { type ServiceKey, services } from './catalogue/services.ts'
import type { SmokingStatus } from './catalogue/vitals.ts'
import type { Person } from './people.ts'
import type { Random } from './random.ts'

/** A condition in someone's life. */
export interface Problem {
  readonly id: string
  readonly key: ConditionKey
  readonly entry: ConditionEntry
  readonly began: Day
  readonly found: Day
  /** Until when; it lasts where there is none. */
  readonly over?: Day
}

/** An encounter and what it was for. */
export interface Visit {
  readonly id: string
  readonly service: ServiceKey
  readonly start: number
  /** Missing while it is in progress, and if it is only planned. */
  readonly end?: number
  readonly status: 'planned' | 'in-progress' | 'finished' | 'cancelled'
  /** Found: the problem was diagnosed here. */
  readonly purpose: 'found' | 'follow-up' | 'check-up' | 'last'
  readonly problem?: Problem
}

export interface Prescription {
  readonly id: string
  readonly medicine: MedicineKey
  readonly problem: Problem
  readonly day: Day
  readonly status: 'active' | 'stopped' | 'completed'
  /** Why it was stopped. */
  readonly ended?: 'changed' | 'died'
  /** The order that this one renews or replaces. */
  readonly follows?: string
}

export type AllergenKey = keyof typeof allergens

/** What stays about a body: how it differs from the average, and how well its problems are kept in check. */
export interface Constitution {
  readonly height: number
  readonly weight: number
  readonly pressure: number
  readonly kidney: number
  readonly lipids: number
  /** Share of a problem's effect that treatment takes away. */
  readonly grip: number
  /** Pressure that was still too high a year ago, in mmHg. */
  readonly lapse: number
  readonly smoking: SmokingStatus
}

/** All that is known about a person: the records are written from it. */
export interface Chart {
  readonly person: Person
  readonly today: Today
  /** The last day of the history: today, or the day of death. */
  readonly end: Day
  readonly random: Random
  readonly constitution: Constitution
  readonly problems: readonly Problem[]
  readonly allergies: readonly AllergenKey[]
  readonly visits: readonly Visit[]
  readonly prescriptions: readonly Prescription[]
}

/** Numbers the records of one person: `condition-7-2`. */
export type Numbering = (kind: string) => string

export function createNumbering(person: Person): Numbering {
  const counts = new Map<string, number>()
  return kind => {
    const count = (counts.get(kind) ?? 0) + 1
    counts.set(kind, count)
    return `${kind}-${person.number}-${count}`
  }
}

export function hasOn(problems: readonly Problem[], key: ConditionKey, day: Day): Problem | undefined {
  return problems.find(it => it.key === key && it.began <= day && (it.over === undefined || it.over > day))
}

/** When a visit's measurements were taken: soon after it began, and recently in a stay that is in progress. */
export function measuredAt({ start, end, service }: Visit, today: Today, minutes: number): number {
  const soon = start + minutes * 60_000
  if (end !== undefined) return Math.min(soon, end)
  const now = Math.max(start, today.hour)
  return services[service].class === 'IMP' ? Math.max(start, now - minutes * 60_000) : Math.min(soon, now)
}

/** When the laboratory answered: four hours later, but not after now. */
export function reportedAt(moment: number, today: Today): number {
  return Math.min(moment + 4 * 3_600_000, Math.max(moment, today.hour))
}
