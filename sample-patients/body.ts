import { type Day, dayOf } from './calendar.ts'
import { type Chart, hasOn } from './chart.ts'
import { ageOn } from './people.ts'

/** What is measured at the bedside, as a whole: pressure, pulse, temperature and size belong together. */
export interface Bedside {
  readonly systolic: number
  readonly diastolic: number
  readonly heartRate: number
  readonly respiratoryRate: number
  readonly temperature: number
  readonly oxygen: number
}

export interface Size {
  readonly height: number
  readonly weight: number
  readonly headSize: number
}

/** How much of a lasting problem's effect is left on a day: all at first, then what treatment leaves. */
export function burden(chart: Chart, since: Day, day: Day): number {
  const years = Math.max(0, day - since) / 365
  return 1 - chart.constitution.grip * (1 - Math.exp(-1.8 * years))
}

export function bedsideAt(chart: Chart, moment: number, urgent: boolean): Bedside {
  const day = dayOf(moment)
  const [systolic, diastolic] = pressureAt(chart, day, urgent)
  const ill = chart.problems.find(
    it => it.entry.fever !== undefined && it.found <= day + 1 && day - it.found < 4,
  )
  const fever = ill?.entry.fever ?? 0
  return {
    systolic,
    diastolic,
    heartRate: chart.random.around(pulseAt(chart, day, urgent) + fever * 9, 5),
    respiratoryRate: chart.random.around(byAge(breaths, months(chart, day)) + fever * 2, 1.2),
    temperature: chart.random.around(36.7 + fever, 0.2),
    oxygen: Math.min(100, chart.random.around(oxygenAt(chart, day), 0.8)),
  }
}

function pressureAt(chart: Chart, day: Day, urgent: boolean): [number, number] {
  const { pressure, lapse } = chart.constitution
  const age = ageOn(chart.person, day)
  const resting = age < 13 ? 88 + 2 * age : age < 18 ? 112 : 110 + 0.26 * (Math.min(age, 80) - 20)
  const hypertension = hasOn(chart.problems, 'hypertension', day)
  const ago = Math.min(1, Math.max(0, (chart.end - day) / 365))
  const raised = hypertension === undefined ? 0 : 28 * burden(chart, hypertension.began, day) + lapse * ago
  const systolic = chart.random.around(resting + pressure + raised + (urgent ? 14 : 0), 3.5)
  const stiff = Math.max(0, age - 60) * 0.22
  return [systolic, chart.random.around(systolic * 0.56 + 10 - stiff, 2.5)]
}

function pulseAt(chart: Chart, day: Day, urgent: boolean): number {
  const resting = byAge(pulses, months(chart, day))
  const fibrillation = hasOn(chart.problems, 'atrialFibrillation', day)
  if (fibrillation !== undefined) return day - fibrillation.found < 3 ? 128 : 79
  return resting + (urgent ? 14 : 0)
}

function oxygenAt(chart: Chart, day: Day): number {
  if (hasOn(chart.problems, 'pneumonia', day) !== undefined) return 92
  if (hasOn(chart.problems, 'copd', day) !== undefined) return 92.5
  if (hasOn(chart.problems, 'bronchiolitis', day) !== undefined) return 93.5
  return hasOn(chart.problems, 'heartFailure', day) === undefined ? 98 : 95
}

export function sizeAt(chart: Chart, moment: number): Size {
  const day = dayOf(moment)
  const age = months(chart, day)
  const { height, weight } = chart.constitution
  const grown = heightAt(chart, age) * (1 + 0.04 * height)
  const full =
    age < 216
      ? byAge(weights, age) * (1 + 0.04 * height) ** 2 * (1 + 0.07 * weight) * twin(chart)
      : adultWeight(chart, day, grown)
  return {
    height: chart.random.around(grown, 0.25),
    weight: chart.random.around(full * firstDays(age), full * 0.006),
    headSize: chart.random.around(byAge(heads, age) * (1 + 0.012 * height), 0.1),
  }
}

/** Women end about thirteen centimetres below men; both lose a little after seventy. */
function heightAt(chart: Chart, age: number): number {
  const curve = byAge(heights, age)
  const { gender } = chart.person
  const shorter =
    Math.max(0, Math.min(1, (age - 150) / 60)) * (gender === 'female' ? 13 : gender === 'male' ? 0 : 6)
  return curve - shorter - Math.max(0, age / 12 - 70) * 0.12
}

function adultWeight(chart: Chart, day: Day, height: number): number {
  const obese = hasOn(chart.problems, 'obesity', day) !== undefined
  const years = (chart.end - day) / 365
  const index = (obese ? 33.5 : 23.8) + chart.constitution.weight * (obese ? 1.6 : 2.2) - years * 0.12
  const pregnancy = hasOn(chart.problems, 'pregnancy', day)
  return index * (height / 100) ** 2 + (pregnancy === undefined ? 0 : (day - pregnancy.began) * 0.042)
}

/** A newborn loses up to seven parts of a hundred and has them back after two weeks. */
function firstDays(age: number): number {
  const days = age * 30.44
  return days > 12 ? 1 : 1 - 0.065 * Math.sin((Math.PI * days) / 12)
}

function twin(chart: Chart): number {
  return chart.person.multipleBirth === undefined ? 1 : 0.78
}

function months(chart: Chart, day: Day): number {
  return (day - chart.person.born) / 30.44
}

type Curve = readonly (readonly [months: number, value: number])[]

/** Medians of the growth charts, both sexes together. */
const heights: Curve = [
  [0, 50],
  [3, 61],
  [6, 67],
  [12, 75],
  [24, 87],
  [48, 102],
  [72, 115],
  [96, 128],
  [120, 138],
  [144, 149],
  [168, 163],
  [192, 173],
  [216, 176],
]

const weights: Curve = [
  [0, 3.4],
  [3, 6.1],
  [6, 7.8],
  [12, 9.7],
  [24, 12.3],
  [48, 16.3],
  [72, 20.8],
  [96, 25.8],
  [120, 32.2],
  [144, 40.7],
  [168, 51],
  [192, 59],
  [216, 64],
]

const heads: Curve = [
  [0, 35],
  [3, 40.5],
  [6, 43.3],
  [12, 46.2],
  [24, 48.5],
]

const pulses: Curve = [
  [0, 140],
  [12, 118],
  [60, 98],
  [120, 84],
  [180, 74],
  [216, 71],
]

const breaths: Curve = [
  [0, 44],
  [12, 29],
  [60, 22],
  [120, 18],
  [180, 16],
]

/** The value of a curve at an age, straight between its points and flat beyond them. */
function byAge(curve: Curve, age: number): number {
  const after = curve.findIndex(([at]) => at > age)
  const next = curve[after]
  const before = curve[after === -1 ? curve.length - 1 : after - 1]
  if (before === undefined) return next?.[1] ?? 0
  if (next === undefined) return before[1]
  return before[1] + ((age - before[0]) / (next[0] - before[0])) * (next[1] - before[1])
}
