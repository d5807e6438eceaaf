import type { DiagnosticReport, Observation } from 'fhir/r4.js'
import { burden } from '../body.ts'
import { dayOf, instantText } from '../calendar.ts'
import { type LabEntry, type LabKey, labs, type PanelKey, panels } from '../catalogue/panels.ts'
import { type SurveyKey, surveys } from '../catalogue/vitals.ts'
import { type Chart, measuredAt, type Numbering, reportedAt, type Visit } from '../chart.ts'
import { type LabValue, labAt, panelAt } from '../chemistry.ts'
import { coded, concept, reference, systems } from '../coding.ts'
import { ageOn } from '../people.ts'
import { type Finding, observationRecord, quantity } from './observation.ts'
import { patientId } from './patient.ts'
import { organizationReference } from './staff.ts'

/** When each panel and test was last done, so that it is not repeated at every visit. */
export type LastDone = Map<PanelKey | LabKey, number>

/** Days between two single tests of a kind. */
const testEvery = 140

/** What the problems of the visit ask for, and at a check-up those of the whole chart. */
export function* labRecords(
  visit: Visit,
  chart: Chart,
  last: LastDone,
  numbering: Numbering,
): Generator<Observation | DiagnosticReport> {
  if (visit.status === 'planned' || visit.status === 'cancelled' || visit.service === 'video') return
  const moment = measuredAt(visit, chart.today, 15)
  const day = dayOf(moment)
  for (const panel of wantedPanels(visit, chart, day)) {
    if (!isDue(panel, panels[panel].every, day, last, visit)) continue
    yield* panelRecords(panel, visit, moment, chart, numbering)
  }
  for (const test of wantedTests(visit, chart, day)) {
    if (isDue(test, testEvery, day, last, visit))
      yield labRecord(labAt(test, chart, day), visit, moment, chart, numbering)
  }
}

function isDue(key: PanelKey | LabKey, every: number, day: number, last: LastDone, visit: Visit): boolean {
  const done = last.get(key)
  if (done !== undefined && day - done < every && visit.purpose !== 'found') return false
  last.set(key, day)
  return true
}

function wantedPanels(visit: Visit, chart: Chart, day: number): Set<PanelKey> {
  const wanted = new Set<PanelKey>(problemsAt(visit, chart, day).flatMap(it => it.entry.panels ?? []))
  if (isScreened(visit, chart, day)) wanted.add('lipids').add('metabolic')
  return wanted
}

/** From forty on, at the latest check-up, also where nothing is wrong. */
function isScreened(visit: Visit, chart: Chart, day: number): boolean {
  return visit === chart.visits.findLast(it => it.service === 'annual') && ageOn(chart.person, day) >= 40
}

function wantedTests(visit: Visit, chart: Chart, day: number): Set<LabKey> {
  return new Set(problemsAt(visit, chart, day).flatMap(it => it.entry.labs ?? []))
}

function problemsAt(visit: Visit, chart: Chart, day: number) {
  const lasting = chart.problems.filter(it => it.entry.lasts === undefined && it.found <= day)
  return visit.purpose === 'check-up' ? lasting : visit.problem === undefined ? [] : [visit.problem]
}

function* panelRecords(
  panel: PanelKey,
  visit: Visit,
  moment: number,
  chart: Chart,
  numbering: Numbering,
): Generator<Observation | DiagnosticReport> {
  const results = panelAt(panel, chart, dayOf(moment)).map(value =>
    labRecord(value, visit, moment, chart, numbering),
  )
  yield* results
  yield {
    resourceType: 'DiagnosticReport',
    id: numbering('diagnosticreport'),
    status: 'final',
    category: [coded(systems.diagnosticService, 'LAB', 'Laboratory')],
    code: concept(systems.loinc, panels[panel].loinc, panels[panel].display),
    subject: reference('Patient', patientId(chart.person)),
    encounter: reference('Encounter', visit.id),
    effectiveDateTime: instantText(moment),
    issued: instantText(reportedAt(moment, chart.today)),
    performer: [organizationReference],
    result: results.map(it => reference('Observation', it.id ?? '', it.code.text)),
  }
}

function labRecord(
  [test, value]: LabValue,
  visit: Visit,
  moment: number,
  chart: Chart,
  numbering: Numbering,
): Observation {
  const entry: LabEntry = labs[test]
  const range = (chart.person.gender === 'female' ? entry.women : undefined) ?? entry.range
  const finding: Finding = {
    category: 'laboratory',
    loinc: entry.loinc,
    display: entry.display,
    text: entry.text,
    value: { valueQuantity: quantity(value, entry.unit, entry.unit) },
    interpretation: interpretation(value, range),
    referenceRange: [rangeRecord(range, entry.unit)],
  }
  return observationRecord(finding, visit, moment, chart, numbering)
}

function interpretation(value: number, { low, high }: LabEntry['range']): 'H' | 'L' | 'N' {
  if (high !== undefined && value > high) return 'H'
  return low !== undefined && value < low ? 'L' : 'N'
}

function rangeRecord({ low, high }: LabEntry['range'], unit: string) {
  return {
    ...(low !== undefined && { low: quantity(low, unit, unit) }),
    ...(high !== undefined && { high: quantity(high, unit, unit) }),
  }
}

/** Scores of questionnaires: high when the problem is found, lower as it is treated; memory only falls. */
export function* surveyRecords(visit: Visit, chart: Chart, numbering: Numbering): Generator<Observation> {
  if (visit.status === 'planned' || visit.status === 'cancelled' || visit.problem === undefined) return
  const day = dayOf(visit.start)
  const left = burden(chart, visit.problem.began, day)
  const years = (day - visit.problem.began) / 365
  const scores: Readonly<Record<SurveyKey, number>> = {
    phq9: 3 + 16 * left,
    gad7: 2 + 13 * left,
    mmse: Math.max(8, 24 - 2.2 * years),
  }
  for (const survey of visit.problem.entry.surveys ?? []) {
    const value = Math.max(0, Math.round(chart.random.around(scores[survey], 1)))
    const finding: Finding = {
      category: 'survey',
      ...surveys[survey],
      value: { valueQuantity: quantity(value, 'score', '{score}') },
    }
    yield observationRecord(finding, visit, measuredAt(visit, chart.today, 15), chart, numbering)
  }
}
