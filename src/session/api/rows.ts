import { conditionsRow } from './conditions.ts'
import { meRow } from './me.ts'
import { medicationsRow } from './medications.ts'
import { patientRow } from './patient.ts'
import { sessionRow } from './session.ts'
import { summaryRow } from './summary.ts'
import { vitalsRow } from './vitals.ts'

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
