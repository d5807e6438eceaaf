import { burden } from './body.ts'
import type { Day } from './calendar.ts'
import { type LabKey, labs, type PanelKey } from './catalogue/panels.ts'
import { type Chart, hasOn } from './chart.ts'
import { ageOn } from './people.ts'

export type LabValue = readonly [test: LabKey, value: number]

/** The results of a panel: numbers that depend on each other are made from each other, after rounding. */
export function panelAt(panel: PanelKey, chart: Chart, day: Day): LabValue[] {
  switch (panel) {
    case 'metabolic':
      return metabolic(chart, day)
    case 'lipids':
      return lipids(chart, day)
    case 'bloodCount':
      return bloodCount(chart, day)
  }
}

/** A test that is done by itself. */
export function labAt(test: LabKey, chart: Chart, day: Day): LabValue {
  return [test, rounded(test, Math.max(0, single(test, chart, day)))]
}

function single(test: LabKey, chart: Chart, day: Day): number {
  const { random } = chart
  switch (test) {
    case 'hba1c':
      return random.around(glycated(chart, day), 0.15)
    case 'tsh':
      return tshAt(chart, day)
    case 'ferritin':
      return deficient(chart, day, 8, 60)
    case 'urate':
      return random.around(6.1 + 3 * (burdenOf(chart, 'gout', day) ?? 0), 0.3)
    case 'inr':
      return random.around(2.5, 0.3)
    case 'natriureticPeptide':
      return random.around(300 + 3200 * (burdenOf(chart, 'heartFailure', day) ?? 0), 120)
    case 'crp':
      return crpAt(chart, day)
    case 'albuminRatio':
      return random.around(hasOn(chart.problems, 'chronicKidneyDisease', day) === undefined ? 14 : 95, 6)
    case 'psa':
      return random.around(2.4, 0.6)
    case 'bilirubin':
      return random.around(13.4, 0.8)
    default:
      return middle(test)
  }
}

function middle(test: LabKey): number {
  const { low = 0, high = low * 1.4 } = rangeOf(test)
  return (low + high) / 2
}

function tshAt(chart: Chart, day: Day): number {
  const left = burdenOf(chart, 'hypothyroidism', day)
  return left === undefined
    ? chart.random.around(2.1, 0.5)
    : chart.random.around(1.9 + 9 * Math.max(0, left - 0.25), 0.5)
}

function crpAt(chart: Chart, day: Day): number {
  const infected = hasOn(chart.problems, 'pneumonia', day) ?? hasOn(chart.problems, 'appendicitis', day)
  if (infected !== undefined) return chart.random.around(118, 20)
  return chart.random.around(3 + 22 * (burdenOf(chart, 'rheumatoidArthritis', day) ?? 0), 1)
}

/** HbA1c in percent. */
function glycated(chart: Chart, day: Day): number {
  const type1 = hasOn(chart.problems, 'type1Diabetes', day)
  if (type1 !== undefined) return 7.4 + 3.4 * burden(chart, type1.began, day) * 0.6
  const type2 = hasOn(chart.problems, 'type2Diabetes', day)
  if (type2 !== undefined) return 6.5 + 2.6 * burden(chart, type2.began, day)
  return hasOn(chart.problems, 'prediabetes', day) === undefined ? 5.3 : 6
}

function metabolic(chart: Chart, day: Day): LabValue[] {
  const { random } = chart
  const fasting = 90 + Math.max(0, glycated(chart, day) - 5.4) * 24
  const creatinine = rounded('creatinine', creatinineAt(chart, day))
  const kidney = hasOn(chart.problems, 'chronicKidneyDisease', day) === undefined ? 0 : 0.4
  const filtration: LabValue[] =
    ageOn(chart.person, day) < 18 ? [] : [['egfr', rounded('egfr', filtrationOf(chart, creatinine, day))]]
  return [
    ['glucose', rounded('glucose', random.around(fasting, 5))],
    ['creatinine', creatinine],
    ...filtration,
    ['sodium', rounded('sodium', random.around(140, 1.6))],
    ['potassium', rounded('potassium', random.around(4.2 + kidney, 0.2))],
  ]
}

const scale = {
  female: { kappa: 0.7, alpha: -0.241, factor: 1.012 },
  male: { kappa: 0.9, alpha: -0.302, factor: 1 },
}

/** The creatinine that gives the filtration that this person is meant to have: CKD-EPI 2021, backwards. */
function creatinineAt(chart: Chart, day: Day): number {
  const age = ageOn(chart.person, day)
  if (age < 18) return 0.25 + 0.03 * age
  const disease = hasOn(chart.problems, 'chronicKidneyDisease', day)
  const lost = disease === undefined ? 0 : ((day - disease.began) / 365) * 1.4
  const meant = disease === undefined ? Math.max(66, 108 - 0.55 * (age - 30)) : Math.max(32, 52 - lost)
  const wanted = chart.random.around(meant + chart.constitution.kidney * 5, 2)
  const { kappa, alpha, factor } = scaleOf(chart)
  const share = wanted / (142 * 0.9938 ** age * factor)
  return kappa * share ** (share > 1 ? 1 / alpha : -1 / 1.2)
}

function filtrationOf(chart: Chart, creatinine: number, day: Day): number {
  const { kappa, alpha, factor } = scaleOf(chart)
  const share = creatinine / kappa
  return (
    142 *
    Math.min(share, 1) ** alpha *
    Math.max(share, 1) ** -1.2 *
    0.9938 ** ageOn(chart.person, day) *
    factor
  )
}

function scaleOf(chart: Chart) {
  return chart.person.gender === 'female' ? scale.female : scale.male
}

/** LDL by Friedewald, from the rounded others. */
function lipids(chart: Chart, day: Day): LabValue[] {
  const { random, constitution } = chart
  const left = burdenOf(chart, 'hyperlipidemia', day) ?? burdenOf(chart, 'coronaryDisease', day)
  const low = left === undefined ? 112 : 82 + 96 * left
  const hdl = rounded(
    'hdl',
    random.around((chart.person.gender === 'female' ? 56 : 47) - constitution.lipids * 3, 3),
  )
  const triglycerides = rounded(
    'triglycerides',
    random.around(left === undefined ? 112 : 120 + 60 * left, 12),
  )
  const ldl = rounded('ldl', random.around(low + constitution.lipids * 8, 5))
  const cholesterol = ldl + hdl + Math.round(triglycerides / 5)
  return [
    ['cholesterol', cholesterol],
    ['triglycerides', triglycerides],
    ['hdl', hdl],
    ['ldl', ldl],
  ]
}

function bloodCount(chart: Chart, day: Day): LabValue[] {
  const { random } = chart
  const usual = chart.person.gender === 'female' ? 13.4 : 14.9
  const child = ageOn(chart.person, day) < 12 ? -1.6 : 0
  const hemoglobin = rounded('hemoglobin', deficient(chart, day, 9.4, usual + child, 0.3))
  const infected = hasOn(chart.problems, 'pneumonia', day) ?? hasOn(chart.problems, 'appendicitis', day)
  return [
    ['hemoglobin', hemoglobin],
    ['hematocrit', Math.round(hemoglobin * 3)],
    ['leukocytes', rounded('leukocytes', random.around(infected === undefined ? 6.8 : 14.6, 0.9))],
    ['platelets', rounded('platelets', random.around(255, 30))],
  ]
}

/** Low when iron deficiency is found, and rising to the usual value as it is treated. */
function deficient(chart: Chart, day: Day, low: number, usual: number, spread = usual * 0.06): number {
  const problem = hasOn(chart.problems, 'ironDeficiency', day)
  if (problem === undefined) return chart.random.around(usual, spread)
  const recovered = Math.min(1, (day - problem.found) / 200)
  return chart.random.around(low + (usual - low) * recovered * 0.95, spread * 0.4)
}

function burdenOf(chart: Chart, key: Parameters<typeof hasOn>[1], day: Day): number | undefined {
  const problem = hasOn(chart.problems, key, day)
  return problem === undefined ? undefined : burden(chart, problem.began, day)
}

function rangeOf(test: LabKey): { readonly low?: number; readonly high?: number } {
  return labs[test].range
}

function rounded(test: LabKey, value: number): number {
  return Number(value.toFixed(labs[test].digits))
}
