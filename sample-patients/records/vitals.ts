import type { Observation } from 'fhir/r4.js'
import { bedsideAt, sizeAt } from '../body.ts'
import { dayOf } from '../calendar.ts'
import { services } from '../catalogue/services.ts'
import { bloodPressure, type VitalKey, vitals } from '../catalogue/vitals.ts'
import { type Chart, measuredAt, type Numbering, type Visit } from '../chart.ts'
import { coded, systems } from '../coding.ts'
import { ageOn } from '../people.ts'
import { type Finding, observationRecord, quantity } from './observation.ts'

/** What is measured when: everything in an emergency, size at a check-up, the pressure nearly always. */
export function* vitalRecords(visit: Visit, chart: Chart, numbering: Numbering): Generator<Observation> {
  const { class: kind } = services[visit.service]
  if (kind === 'VR' || visit.status === 'planned' || visit.status === 'cancelled') return
  const moment = measuredAt(visit, chart.today, 10)
  const write = (finding: Finding) => observationRecord(finding, visit, moment, chart, numbering)
  const urgent = kind === 'EMER' || kind === 'IMP'
  const bedside = bedsideAt(chart, moment, urgent)
  const one = (key: VitalKey, value: number) => write(vitalFinding(key, value))
  if (ageOn(chart.person, dayOf(moment)) >= 3)
    yield write(pressureFinding(bedside.systolic, bedside.diastolic))
  if (urgent || visit.purpose !== 'follow-up') yield one('heartRate', bedside.heartRate)
  if (urgent || isFeverish(visit)) yield one('temperature', bedside.temperature)
  if (urgent || visit.service === 'respiratory') yield one('oxygen', bedside.oxygen)
  if (urgent) yield one('respiratoryRate', bedside.respiratoryRate)
  if (isWeighed(visit)) yield* sizes(moment, visit, chart, one)
}

function isFeverish({ problem, purpose }: Visit): boolean {
  return purpose === 'found' && problem?.entry.fever !== undefined
}

function isWeighed({ purpose, service }: Visit): boolean {
  return purpose === 'check-up' || service === 'newborn' || service === 'diabetes' || service === 'antenatal'
}

function* sizes(
  moment: number,
  visit: Visit,
  chart: Chart,
  one: (key: VitalKey, value: number) => Observation,
): Generator<Observation> {
  const size = sizeAt(chart, moment)
  const age = ageOn(chart.person, dayOf(moment))
  const weight = Number(size.weight.toFixed(vitals.weight.digits))
  const height = Number(size.height.toFixed(vitals.height.digits))
  yield one('weight', weight)
  if (visit.purpose !== 'check-up' && visit.service !== 'newborn') return
  yield one('height', height)
  if (age >= 2) yield one('bmi', weight / (height / 100) ** 2)
  if (age < 2) yield one('headSize', size.headSize)
}

function vitalFinding(key: VitalKey, value: number): Finding {
  const { loinc, display, text, unit, unitText, digits } = vitals[key]
  return {
    category: 'vital-signs',
    loinc,
    display,
    text,
    value: { valueQuantity: quantity(Number(value.toFixed(digits)), unitText, unit) },
  }
}

function pressureFinding(systolic: number, diastolic: number): Finding {
  const [loinc, display, text] = bloodPressure.panel
  return {
    category: 'vital-signs',
    loinc,
    display,
    text,
    component: [
      component(bloodPressure.systolic, Math.round(systolic)),
      component(bloodPressure.diastolic, Math.round(diastolic)),
    ],
  }
}

function component([code, display]: readonly [string, string], value: number) {
  return {
    code: { ...coded(systems.loinc, code, display), text: display },
    valueQuantity: quantity(value, 'mmHg', 'mm[Hg]'),
  }
}
