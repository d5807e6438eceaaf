import { Type } from '@sinclair/typebox'
import { succeed } from '../failure.ts'
import { Condition, MedicationRequest, Patient } from '../records/resources.ts'
import { conditionsRow } from './conditions.ts'
import { meRow } from './me.ts'
import { medicationsRow } from './medications.ts'
import { patientRow } from './patient.ts'
import { defineRow, NoQuery } from './row.ts'
import { sessionRow } from './session.ts'
import { vitalsRow } from './vitals.ts'

/** The arrays hold the resources that `/api/conditions` and `/api/medications` return by default (API-7). */
const summaryRow = defineRow({
  path: '/api/summary',
  title: 'Summary',
  description:
    'The patient with active conditions and active medications, as the three addresses give them by default.',
  scopes: [...patientRow.scopes, ...conditionsRow.scopes, ...medicationsRow.scopes],
  query: NoQuery,
  body: Type.Object({
    patient: Patient,
    conditions: Type.Array(Condition),
    medications: Type.Array(MedicationRequest),
  }),
  extendsSession: true,
  answer: async visit => {
    const [patient, conditions, medications] = await Promise.all([
      patientRow.answer(visit, {}),
      conditionsRow.answer(visit, { status: 'active', _count: 50 }),
      medicationsRow.answer(visit, {}),
    ])
    if (!patient.ok) return patient
    if (!conditions.ok) return conditions
    if (!medications.ok) return medications
    return succeed({
      patient: patient.value,
      conditions: conditions.value.entry.map(({ resource }) => resource),
      medications: medications.value.entry.map(({ resource }) => resource),
    })
  },
})

/** All endpoints of the session API (API-2 to API-8). */
export const apiRows = [
  sessionRow,
  meRow,
  patientRow,
  conditionsRow,
  medicationsRow,
  summaryRow,
  vitalsRow,
] as const
