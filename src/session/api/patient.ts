import { succeed } from '../failure.ts'
import { fitsSchema } from '../records/fits-schema.ts'
import { failUnexpected, readFhir } from '../records/read-fhir.ts'
import { Patient } from '../records/resources.ts'
import { defineRow, NoQuery } from './row.ts'

export const patientRow = defineRow({
  path: '/api/patient',
  title: 'Patient',
  description: 'The patient of the launch.',
  scopes: ['patient/Patient.rs'],
  query: NoQuery,
  body: Patient,
  extendsSession: true,
  answer: async visit => {
    const { fhirBaseUrl, patientId } = visit.session
    const read = await readFhir(visit, `${fhirBaseUrl}/Patient/${patientId}`)
    if (!read.ok) return read
    if (!fitsSchema(Patient, read.value) || read.value.id !== patientId)
      return failUnexpected('it is not the patient of the launch')
    return succeed(read.value)
  },
})
