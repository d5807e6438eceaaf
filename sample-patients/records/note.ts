import type { DocumentReference } from 'fhir/r4.js'
import { instantText } from '../calendar.ts'
import { services } from '../catalogue/services.ts'
import type { Chart, Numbering, Visit } from '../chart.ts'
import { coded, concept, reference, systems } from '../coding.ts'
import { patientId } from './patient.ts'
import { organizationReference, practitionerReference } from './staff.ts'

const kinds = {
  EMER: ['34111-5', 'Emergency department Note'],
  IMP: ['18842-5', 'Discharge summary'],
} as const

/** The letter that follows an emergency or a stay. It says nothing that is not on the chart, and names nobody. */
export function* noteRecords(visit: Visit, chart: Chart, numbering: Numbering): Generator<DocumentReference> {
  const { class: kind, text, staff } = services[visit.service]
  if ((kind !== 'EMER' && kind !== 'IMP') || visit.end === undefined) return
  const [code, display] = kinds[kind]
  const words = `${text}. ${visit.problem === undefined ? 'Cared for on the ward.' : `Seen for: ${visit.problem.entry.display}.`}`
  yield {
    resourceType: 'DocumentReference',
    id: numbering('documentreference'),
    status: 'current',
    type: concept(systems.loinc, code, display),
    category: [
      coded(
        'http://hl7.org/fhir/us/core/CodeSystem/us-core-documentreference-category',
        'clinical-note',
        'Clinical Note',
      ),
    ],
    subject: reference('Patient', patientId(chart.person)),
    date: instantText(visit.end),
    author: [practitionerReference(staff[0])],
    custodian: organizationReference,
    content: [
      {
        attachment: {
          contentType: 'text/plain',
          data: Buffer.from(words).toString('base64'),
          title: display,
        },
      },
    ],
    context: { encounter: [reference('Encounter', visit.id)] },
  }
}
