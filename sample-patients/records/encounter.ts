import type { Encounter } from 'fhir/r4.js'
import { instantText } from '../calendar.ts'
import { encounterClasses, encounterTypes, type ServiceEntry, services } from '../catalogue/services.ts'
import { locations } from '../catalogue/staff.ts'
import type { Chart, Visit } from '../chart.ts'
import { coded, concept, reference, systems } from '../coding.ts'
import { patientId } from './patient.ts'
import { locationId, organizationReference, practitionerReference } from './staff.ts'

export function encounterRecord(visit: Visit, chart: Chart): Encounter {
  const service: ServiceEntry = services[visit.service]
  const [code, display] = encounterTypes[service.type]
  const { problem } = visit
  return {
    resourceType: 'Encounter',
    id: visit.id,
    status: visit.status,
    class: { system: systems.actCode, code: service.class, display: encounterClasses[service.class] },
    type: [concept(systems.snomed, code, display, service.text)],
    subject: reference('Patient', patientId(chart.person)),
    participant: service.staff.map(key => ({
      type: [coded(systems.participation, 'PPRF', 'primary performer')],
      individual: practitionerReference(key),
    })),
    period: periodOf(visit),
    ...(problem && {
      reasonCode: [concept(systems.snomed, problem.entry.snomed, problem.entry.display)],
      diagnosis: [{ condition: reference('Condition', problem.id, problem.entry.display) }],
    }),
    ...(visit.purpose === 'last' && {
      hospitalization: {
        dischargeDisposition: coded(
          'http://terminology.hl7.org/CodeSystem/discharge-disposition',
          'exp',
          'Expired',
        ),
      },
    }),
    ...(service.class !== 'VR' &&
      service.class !== 'HH' && {
        location: [
          { location: reference('Location', locationId(service.location), locations[service.location]) },
        ],
      }),
    serviceProvider: organizationReference,
  }
}

function periodOf({ start, end }: Visit) {
  return end === undefined
    ? { start: instantText(start) }
    : { start: instantText(start), end: instantText(end) }
}
