import type { Dosage as DosageRecord, MedicationRequest } from 'fhir/r4.js'
import { dateText } from '../calendar.ts'
import { type MedicineEntry, routes } from '../catalogue/dosage.ts'
import { medicines } from '../catalogue/medicines.ts'
import { services } from '../catalogue/services.ts'
import type { Chart, Prescription } from '../chart.ts'
import { coded, concept, reference, systems } from '../coding.ts'
import { patientId } from './patient.ts'
import { medicationId, practitionerReference } from './staff.ts'

export function medicationRequestRecord(prescription: Prescription, chart: Chart): MedicationRequest {
  const { problem, status, ended, follows } = prescription
  const medicine: MedicineEntry = medicines[prescription.medicine]
  const visit = chart.visits.find(
    it => it.problem === problem && it.purpose === 'found' && prescription.day <= problem.found,
  )
  return {
    resourceType: 'MedicationRequest',
    id: prescription.id,
    status,
    ...(ended && { statusReason: { text: stopReason(ended, chart) } }),
    intent: 'order',
    category: [coded(systems.medicationRequestCategory, 'community', 'Community')],
    ...what(prescription),
    subject: reference('Patient', patientId(chart.person)),
    ...(visit && { encounter: reference('Encounter', visit.id) }),
    authoredOn: dateText(prescription.day),
    requester: practitionerReference(services[problem.entry.followed ?? problem.entry.found].staff[0]),
    reasonReference: [reference('Condition', problem.id, problem.entry.display)],
    ...(follows !== undefined && { priorPrescription: reference('MedicationRequest', follows) }),
    ...(hasDosage(prescription, chart) && { dosageInstruction: [dosageOf(medicine)] }),
  }
}

/** Insulins are records of their own that the order points to; everything else is a code in the order. */
function what({
  medicine,
}: Prescription): Pick<MedicationRequest, 'medicationCodeableConcept' | 'medicationReference'> {
  if (medicine === 'insulinGlargine' || medicine === 'insulinLispro') {
    return { medicationReference: reference('Medication', medicationId(medicine), medicines[medicine].text) }
  }
  const { rxnorm, display, text } = medicines[medicine]
  return { medicationCodeableConcept: concept(systems.rxnorm, rxnorm, display, text) }
}

function stopReason(ended: 'changed' | 'died', { random }: Chart): string {
  return ended === 'died' ? 'Patient died' : random.pick(['Side effects', 'Not effective enough'])
}

/** Now and then an order says nothing about how the medicine is taken: a screen must say so too. */
function hasDosage({ medicine }: Prescription, chart: Chart): boolean {
  return chart.person.number === 1 ? medicine !== 'levothyroxine' : chart.random.chance(0.96)
}

function dosageOf({ dosage }: MedicineEntry): DosageRecord {
  const { text, dose, times, route, asNeeded } = dosage
  return {
    text,
    ...(times && { timing: { repeat: { frequency: times[0], period: 1, periodUnit: times[1] } } }),
    ...(asNeeded && { asNeededBoolean: true }),
    route: concept(systems.snomed, routes[route][0], routes[route][1]),
    doseAndRate: [{ doseQuantity: { value: dose[0], unit: dose[1] } }],
  }
}
